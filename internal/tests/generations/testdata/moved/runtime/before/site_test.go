// SPDX-License-Identifier: Apache-2.0

package site

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"reconciler.io/runtime/reconcilers"
	rtesting "reconciler.io/runtime/testing"
)

func TestReconciler(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	site := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	secret.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(site, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
	}
	theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theme"}}
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "site"}}

	rts := rtesting.ReconcilerTests{
		"creates a secret": {
			Request:       request,
			GivenObjects:  []client.Object{site},
			ExpectCreates: []client.Object{secret},
			ExpectTracks:  []rtesting.TrackRequest{rtesting.NewTrackRequest(theme, site, scheme)},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(site, scheme, corev1.EventTypeNormal, "Created", `Created Secret "site"`),
			},
		},
		"does not exist": {
			Request: request,
		},
	}
	rts.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return Reconciler(c)
	})
}

func TestCheck(t *testing.T) {
	if err := Check(t.Context(), reconcilers.Config{}); err != nil {
		t.Error(err)
	}
}
