// SPDX-License-Identifier: Apache-2.0

// Package clusters runs the controllers of a program in many clusters, from one manager. Clusters come and go while it
// runs.
//
// # Set up
//
// What main does for one cluster is a function here, which a [Fleet] calls for each cluster:
//
//	fleet, err := clusters.New(mgr, clusters.Options{
//		SetUp: func(ctx context.Context, mgr ctrl.Manager) error {
//			c := reconcilers.NewConfig(mgr, &websitev1.Website{}, 10*time.Hour)
//			return NewWebsiteReconciler(c).SetupWithManager(ctx, mgr)
//		},
//	})
//
// SetUp gets a manager that has the clients, the cache and the event recorders of the cluster, and is otherwise the
// manager of the program. Nothing in a controller changes: trees of package reconcilers, controllers of package
// operator, and controllers without this module work as in a single cluster. Each cluster has reconcilers, trackers,
// indexes and memories of its own, so objects of the same name in two clusters have nothing in common. [Name] returns
// the name of the cluster, for example to name what is outside of Kubernetes.
//
// # Clusters
//
// [Fleet.Engage] adds a cluster until its context ends. The caller starts the cluster:
//
//	ctx, leave := context.WithCancel(ctx)
//	cl, err := cluster.New(config, func(o *cluster.Options) { o.Scheme = mgr.GetScheme() })
//	go cl.Start(ctx)
//	err = fleet.Engage(ctx, "europe", cl)
//
// The methods Engage, Get and IndexField have the shape of the interfaces of multicluster-runtime. Its providers, which
// find the clusters, can therefore engage them in a Fleet, and this package does not depend on that module.
//
// When the context ends, the reconciles of the cluster are canceled, its requests are dropped, and nothing of it is
// kept. The name can then be engaged again.
//
// # One controller
//
// All clusters share one queue and one set of workers for each controller, with requests of type [Request]. The
// clusters take turns in the queue, within each priority. The namespaces of a cluster also do with the field
// FairNamespaces of reconcilers.Config. A cluster cannot hold the others:
//
//   - Its requests wait until its own caches are filled. A cluster that cannot be reached when it is engaged occupies
//     no worker. [Fleet.Ready] says what it waits for. The readiness of the manager does not depend on it.
//   - It occupies at most [Options].WorkersOfCluster workers, by default half of them.
//   - A reconcile that has not ended after [Options].Timeout is canceled. The cluster is then paused: only one of its
//     requests is tried at a time, after a second, and then after twice as long each time, up to a minute, until one
//     ends in time.
//
// By default, a cluster that stops answering occupies half of the workers once, for 30 seconds, and afterwards one
// worker for 30 seconds at a time, with pauses that grow to a minute. This holds for reconcilers that pass on their
// context.
//
// # Operate
//
// Log lines have the key "cluster". Metrics have no label for it, because there may be many clusters: the metrics of a
// controller count all of its clusters, and the metric trueup_clusters counts the clusters by state. In the console, in
// recordings and in trueup why, the name of the controller is followed by an @ and the name of the cluster. The console
// has a page with the states of the clusters.
package clusters
