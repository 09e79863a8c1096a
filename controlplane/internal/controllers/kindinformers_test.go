// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/cache"
)

func TestKindInformersEndWithTheirKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kinds := newKindInformers(
		informers.NewSharedInformerFactory(fake.NewClientset(), 0), metadatafake.NewSimpleMetadataClient(scheme),
	)
	stop := make(chan struct{})
	defer close(stop)
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	get := func(resource schema.GroupVersionResource) cache.SharedIndexInformer {
		t.Helper()
		informer, err := kinds.ForResource(resource)
		if err != nil {
			t.Fatal(err)
		}
		kinds.Start(stop)
		return informer.Informer()
	}
	served := []*metav1.APIResourceList{
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "widgets"}}},
	}

	first := get(widgets)
	if !cache.WaitForCacheSync(t.Context().Done(), first.HasSynced) {
		t.Fatal("informer does not run")
	}
	kinds.forgetAllBut(served)
	if get(widgets) != first {
		t.Error("got a new informer while the kind is served, want the same")
	}
	kinds.forgetAllBut(nil)
	second := get(widgets)
	if second == first {
		t.Error("got the old informer after the kind was removed, want a new one")
	}
	deadline := time.After(10 * time.Second)
	for !first.IsStopped() {
		select {
		case <-deadline:
			t.Fatal("the old informer still runs")
		case <-time.After(10 * time.Millisecond):
		}
	}
	if second.IsStopped() {
		t.Error("the new informer ended with the old one")
	}

	get(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	if len(kinds.dynamic) != 1 {
		t.Errorf("got %d metadata informers, want one: built-in kinds use those of the controllers", len(kinds.dynamic))
	}
}
