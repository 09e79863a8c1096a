// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// listingClient also lists the ConfigMap, as an index of the cache does.
type listingClient struct{ unchangingClient }

func (c listingClient) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.ConfigMapList).Items = []corev1.ConfigMap{*c.configMap}
	return nil
}

// BenchmarkPrune measures a no-op request with one child, without and with an inventory.
func BenchmarkPrune(b *testing.B) {
	child := func() subReconciler { return newChild(func(*fixture.Resource, string) {}) }
	for name, tc := range map[string]struct {
		reconciler subReconciler
		child      *corev1.ConfigMap
	}{
		"Without": {child(), newConfigMap("child")},
		"With":    {&prune{Inventory: inventoryKey, Reconciler: child()}, newConfigMap("child", labelled)},
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.Config.Client = listingClient{unchangingClient{
				Client:    w.Config.Client,
				resource:  newResource(settled, recorded(`{"kinds":["ConfigMap"]}`)),
				configMap: tc.child,
			}}
			mgr := newManager(b, w, newEventCache(w.Scheme))
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: tc.reconciler}
			wantErr(b, nil, r.SetupWithManager(b.Context(), mgr))
			b.ReportAllocs()
			for b.Loop() {
				if result, err := r.ReconcileManaged(b.Context(), testRequest); err != nil || result != (reconcilers.Result{}) {
					b.Fatalf("result %v, error %v", result, err)
				}
			}
		})
	}
}
