// SPDX-License-Identifier: Apache-2.0

package site

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmware-labs/reconciler-runtime/reconcilers"
	rtesting "github.com/vmware-labs/reconciler-runtime/testing"
)

func TestReconciler(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	site := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	paused := site.DeepCopy()
	paused.Labels = map[string]string{"paused": "true"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}
	secret.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(site, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
	}
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "site"}}

	rts := rtesting.ReconcilerTests{
		"creates a secret": {
			Request:       request,
			GivenObjects:  []client.Object{site},
			ExpectCreates: []client.Object{secret},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(site, scheme, corev1.EventTypeNormal, "Created", `Created Secret "site"`),
			},
		},
		"is paused": {
			Request:      request,
			GivenObjects: []client.Object{paused},
		},
	}
	rts.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return Reconciler(c)
	})
}

func TestGreet(t *testing.T) {
	var greeted strings.Builder
	Greet(&greeted, "100%", 2)
	if got := greeted.String(); !strings.HasPrefix(got, "100%") {
		t.Errorf("got %q", got)
	}
}
