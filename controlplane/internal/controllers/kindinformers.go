// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// informerLinger lets an informer of a removed kind deliver the last deletions.
const informerLinger = 2 * time.Second

// kindInformers provides the garbage collector with an informer for any kind: the controllers' own for built-in kinds,
// and a metadata-only informer for all others. Unlike the factories of client-go, it stops the informer of a kind that
// was removed. Such an informer would retry with increasing back-off, and a CRD that is installed again could stay
// unnoticed for up to half a minute.
type kindInformers struct {
	typed  informers.SharedInformerFactory
	client metadata.Interface

	mu      sync.Mutex
	dynamic map[schema.GroupVersionResource]*kindInformer
}

type kindInformer struct {
	informers.GenericInformer
	stop    chan struct{}
	started bool
}

func newKindInformers(typed informers.SharedInformerFactory, client metadata.Interface) *kindInformers {
	return &kindInformers{typed: typed, client: client, dynamic: map[schema.GroupVersionResource]*kindInformer{}}
}

// ForResource returns the resource's informer; Start runs it.
func (k *kindInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	if informer, err := k.typed.ForResource(resource); err == nil {
		return informer, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.dynamic[resource]; ok {
		return known.GenericInformer, nil
	}
	informer := metadatainformer.NewFilteredMetadataInformer(k.client, resource, metav1.NamespaceAll, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil)
	if err := informer.Informer().SetTransform(dropManagedFields); err != nil {
		return nil, err
	}
	k.dynamic[resource] = &kindInformer{GenericInformer: informer, stop: make(chan struct{})}
	return informer, nil
}

// Start runs the informers that do not run yet, until stop is closed.
func (k *kindInformers) Start(stop <-chan struct{}) {
	k.typed.Start(stop)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, informer := range k.dynamic {
		if informer.started {
			continue
		}
		informer.started = true
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			select {
			case <-stop:
			case <-informer.stop:
			}
		}()
		go informer.Informer().Run(ended)
	}
}

// forgetAllBut stops the informers of kinds that are no longer served.
func (k *kindInformers) forgetAllBut(served []*metav1.APIResourceList) {
	current := map[schema.GroupVersionResource]bool{}
	for _, list := range served {
		groupVersion, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			current[groupVersion.WithResource(resource.Name)] = true
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for resource, informer := range k.dynamic {
		if !current[resource] {
			delete(k.dynamic, resource)
			time.AfterFunc(informerLinger, func() { close(informer.stop) })
		}
	}
}
