// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func ExampleConfig_TrackAndGet() {
	theme := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theme"}, Data: map[string]string{"color": "blue"},
	}
	cluster := clusterWith(site(), theme)
	reconcile(cluster, &reconcilers.SyncReconciler[*v1.Resource]{
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
		Sync: func(ctx context.Context, resource *v1.Resource) error {
			theme := &corev1.ConfigMap{}
			key := types.NamespacedName{Namespace: resource.Namespace, Name: "theme"}
			if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, theme); err != nil {
				return err
			}
			fmt.Println("color:", theme.Data["color"])
			return nil
		},
	})
	// A change of the theme triggers the site.
	observers, _ := cluster.Tracker.GetObservers(theme)
	fmt.Println("observers:", observers)
	// Output:
	// color: blue
	// observers: [default/blog]
}

func ExampleConfig_TrackAndList() {
	cluster := clusterWith(site())
	reconcile(cluster, &reconcilers.SyncReconciler[*v1.Resource]{
		Sync: func(ctx context.Context, resource *v1.Resource) error {
			plugins := &corev1.ConfigMapList{}
			return reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, plugins,
				client.InNamespace(resource.Namespace), client.MatchingLabels{"plugin": "true"})
		},
	})
	// Plugins that are created later also trigger the site.
	plugin := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "search", Labels: map[string]string{"plugin": "true"},
	}}
	observers, _ := cluster.Tracker.GetObservers(plugin)
	fmt.Println("observers:", observers)
	// Output:
	// observers: [default/blog]
}

func ExampleEnqueueTracked() {
	_ = &reconcilers.SyncReconciler[*v1.Resource]{
		Name: "Theme",
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
		Sync: func(ctx context.Context, resource *v1.Resource) error {
			key := types.NamespacedName{Namespace: resource.Namespace, Name: "theme"}
			return reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &corev1.ConfigMap{})
		},
	}
}

func ExampleNewStasher() {
	colors := reconcilers.NewStasher[string]("example.com/color")
	reconcile(clusterWith(site()), reconcilers.Sequence[*v1.Resource]{
		&reconcilers.SyncReconciler[*v1.Resource]{Sync: func(ctx context.Context, _ *v1.Resource) error {
			colors.Store(ctx, "blue")
			return nil
		}},
		&reconcilers.SyncReconciler[*v1.Resource]{Sync: func(ctx context.Context, _ *v1.Resource) error {
			fmt.Println(colors.RetrieveOrEmpty(ctx))
			return nil
		}},
	})
	// Output:
	// blue
}

func ExampleAggregateResults() {
	result := reconcilers.AggregateResults(
		reconcilers.Result{RequeueAfter: time.Hour}, reconcilers.Result{}, reconcilers.Result{RequeueAfter: time.Minute},
	)
	fmt.Println(result.RequeueAfter)
	// Output:
	// 1m0s
}

func ExampleMergeMaps() {
	labels := reconcilers.MergeMaps(map[string]string{"app": "site", "tier": "web"}, map[string]string{"tier": "edge"})
	fmt.Println(labels)
	// Output:
	// map[app:site tier:edge]
}

func ExampleIgnoreAllUnexported() {
	one := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	// Quantities store their original text in unexported fields.
	same := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")}
	fmt.Println(cmp.Equal(one, same, reconcilers.IgnoreAllUnexported))

	type cache struct {
		Size int
		hits int
	}
	fmt.Println(cmp.Equal(cache{Size: 1, hits: 2}, cache{Size: 1, hits: 3}, reconcilers.IgnoreAllUnexported))
	// Output:
	// true
	// true
}
