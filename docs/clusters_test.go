// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/clusters"
	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/reconcilers"
)

func connect(
	mgr ctrl.Manager, c reconcilers.Config, restConfig *rest.Config,
) (cluster.Cluster, reconcilers.Config, error) {
	fail := func(err error) (cluster.Cluster, reconcilers.Config, error) { return nil, c, err }
	// region clusters-connect
	edge, err := cluster.New(restConfig, func(o *cluster.Options) { o.Scheme = mgr.GetScheme() })
	if err != nil {
		return fail(err)
	}
	if err := mgr.Add(edge); err != nil { // its caches start and stop with the manager
		return fail(err)
	}
	onEdge := c.WithCluster(edge) // c is the config of the manager's cluster
	// endregion
	return edge, onEdge, nil
}

// region clusters-with-config
// OnEdge runs a reconciler against another cluster. The Website itself, its status, finalizers and events remain in
// their cluster.
func OnEdge(
	onEdge reconcilers.Config, r reconcilers.SubReconciler[*websitev1.Website],
) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.WithConfig[*websitev1.Website]{
		Name:       "Edge",
		Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return onEdge, nil },
		Reconciler: r,
	}
}

// endregion

// region clusters-child
// EdgePagesReconciler manages a ConfigMap in the cluster that WithConfig chooses.
func EdgePagesReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "EdgePages",
		// The owner is in another cluster, so garbage collection does not work. A finalizer implies no owner reference.
		Finalizer: "demo.trueup.dev/edge-pages",
		ListOptions: func(_ context.Context, site *websitev1.Website) []client.ListOption {
			return []client.ListOption{client.InNamespace("edge"), client.MatchingLabels{websitev1.LabelWebsite: site.Name}}
		},
		OurChild: func(site *websitev1.Website, child *corev1.ConfigMap) bool {
			return child.Labels[websitev1.LabelWebsite] == site.Name
		},
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "edge", Name: site.Name, Labels: map[string]string{websitev1.LabelWebsite: site.Name},
			}}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(ctx context.Context, site *websitev1.Website, _ *corev1.ConfigMap, err error) {
			if err != nil { // the name is in use, or the API server rejects the object
				site.Status.ConditionManager(ctx).MarkFalse(
					websitev1.ConditionContentReady, string(apierrs.ReasonForError(err)), "%s", err,
				)
			}
		},
	}
}

// endregion

func watchOnEdge(edge cluster.Cluster) *reconcilers.SyncReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		// region clusters-watch
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.WatchesRawSource(
				source.Kind[client.Object](edge.GetCache(), &corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx)),
			)
			return nil
		},
		Sync: func(ctx context.Context, _ *websitev1.Website) error {
			key := client.ObjectKey{Namespace: "edge", Name: "settings"}
			return reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &corev1.ConfigMap{})
		},
		// endregion
	}
}

func fleet(mgr ctrl.Manager) (*clusters.Fleet, error) {
	// region clusters-fleet
	fleet, err := clusters.New(mgr, clusters.Options{
		SetUp: func(ctx context.Context, mgr ctrl.Manager) error { // what main does for one cluster
			return website.SetupWithManager(ctx, mgr, website.Options{
				Records: dns.NewDirectory("/var/lib/records/" + clusters.Name(ctx)),
			})
		},
	})
	// endregion
	return fleet, err
}

// region clusters-engage
// Connect engages a cluster in a fleet until the context ends.
func Connect(
	ctx context.Context, fleet *clusters.Fleet, name string, config *rest.Config, scheme *runtime.Scheme,
) error {
	cl, err := cluster.New(config, func(o *cluster.Options) { o.Scheme = scheme })
	if err != nil {
		return err
	}
	go func() {
		if err := cl.Start(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "The cluster has failed", "cluster", name)
		}
	}()
	return fleet.Engage(ctx, name, cl)
}

// endregion

func Example_clusters() {
	here, there := newCluster(newSite()), newCluster()
	there.Tracker = here.Tracker // as WithCluster does
	reconcileOnce(here, OnEdge(there, EdgePagesReconciler()))
	pages := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "bakery"}}
	fmt.Println("there:", there.Get(context.Background(), client.ObjectKeyFromObject(pages), pages))
	observers, err := here.Tracker.GetObservers(pages)
	fmt.Println(observers, err)
	_, _, _, _ = connect, watchOnEdge, fleet, Connect
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/edge-pages"
	// event: Normal Created: Created ConfigMap "bakery"
	// there: <nil>
	// [default/bakery] <nil>
}
