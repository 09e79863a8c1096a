// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

// region children-aggregate
func SitesIndexReconciler(c reconcilers.Config) *reconcilers.AggregateReconciler[*corev1.ConfigMap] {
	sitesStasher := reconcilers.NewStasher[[]websitev1.Website]("sites")
	return &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
		Name:    "SitesIndex",
		Request: reconcilers.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "sites"}},
		Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
			Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Watches(&websitev1.Website{}, reconcilers.EnqueueTracked(ctx))
				return nil
			},
			Sync: func(ctx context.Context, _ *corev1.ConfigMap) error {
				sites := &websitev1.WebsiteList{}
				if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, sites); err != nil {
					return err
				}
				sitesStasher.Store(ctx, sites.Items)
				return nil
			},
		},
		DesiredResource: func(ctx context.Context, index *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			index.Data = map[string]string{}
			for _, site := range sitesStasher.RetrieveOrDie(ctx) {
				index.Data[site.Name] = site.Spec.Domain
			}
			return index, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		Config:            c,
	}
}

// endregion

func Example_aggregate() {
	cluster := newCluster(newSite())
	r := SitesIndexReconciler(cluster)
	for range 2 {
		if _, err := r.Reconcile(context.Background(), r.Request); err != nil {
			fmt.Println(err)
		}
	}
	index := &corev1.ConfigMap{}
	if err := cluster.Get(context.Background(), r.Request.NamespacedName, index); err != nil {
		fmt.Println(err)
	}
	fmt.Println(index.Data)
	// Output:
	// event: Normal Created: Created ConfigMap "sites"
	// map[bakery:bakery.example.com]
}
