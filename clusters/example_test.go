// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"trueup.dev/clusters"
	"trueup.dev/reconcilers"
)

// The same controller for all clusters of a list. It copies the labels of each ConfigMap "settings" to a child.
func Example() {
	setUp := func(ctx context.Context, mgr ctrl.Manager) error { // as for one cluster
		return (&reconcilers.ResourceReconciler[*corev1.ConfigMap]{
			SkipResource: func(_ context.Context, settings *corev1.ConfigMap) bool { return settings.Name != "settings" },
			Reconciler: &reconcilers.ChildReconciler[*corev1.ConfigMap, *corev1.Secret, *corev1.SecretList]{
				DesiredChild: func(_ context.Context, settings *corev1.ConfigMap) (*corev1.Secret, error) {
					return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
						Namespace: settings.Namespace, Name: settings.Name, Labels: settings.Labels,
					}}, nil
				},
				MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.Labels = desired.Labels },
			},
			Config: reconcilers.NewConfig(mgr, &corev1.ConfigMap{}, 10*time.Hour),
		}).SetupWithManager(ctx, mgr)
	}
	run := func(ctx context.Context, mgr ctrl.Manager, configs map[string]*rest.Config) error {
		fleet, err := clusters.New(mgr, clusters.Options{SetUp: setUp})
		if err != nil {
			return err
		}
		for name, config := range configs { // or let a provider engage the clusters that it finds
			cl, err := cluster.New(config, func(o *cluster.Options) { o.Scheme = mgr.GetScheme() })
			if err != nil {
				return err
			}
			go func() {
				if err := cl.Start(ctx); err != nil {
					mgr.GetLogger().Error(err, "The cluster has failed", "cluster", name)
				}
			}()
			if err := fleet.Engage(ctx, name, cl); err != nil {
				return err
			}
		}
		return mgr.Start(ctx)
	}
	_ = run
}

// A reconciler reads an object of another cluster of the fleet.
func ExampleFleet_Get() {
	read := func(ctx context.Context, fleet *clusters.Fleet) (*corev1.ConfigMap, error) {
		central, err := fleet.Get(ctx, "central")
		if err != nil {
			return nil, err
		}
		found := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: "clusters", Name: clusters.Name(ctx)}
		return found, central.GetClient().Get(ctx, key, found)
	}
	_ = read
}

// A provider that finds clusters has the fleet tell what they wait for.
func ExampleFleet_Ready() {
	report := func(fleet *clusters.Fleet) {
		for _, name := range fleet.Names() {
			if err := fleet.Ready(name); err != nil {
				fmt.Println(err)
			}
		}
	}
	_ = report
}

// All clusters, present and future, have an index.
func ExampleFleet_IndexField() {
	index := func(ctx context.Context, fleet *clusters.Fleet) error {
		return fleet.IndexField(ctx, &corev1.Pod{}, "spec.nodeName", func(obj client.Object) []string {
			return []string{obj.(*corev1.Pod).Spec.NodeName}
		})
	}
	_ = index
}

// The name of the cluster, in SetUp and in each reconcile.
func ExampleName() {
	fmt.Printf("%q\n", clusters.Name(context.Background())) // outside of them
	// Output: ""
}
