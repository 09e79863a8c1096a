// SPDX-License-Identifier: Apache-2.0

// Package informer provides the objects of one kind to a controller, from a source of its own instead of the cache of
// the manager. Such an [Informer] can select objects by label, field, namespace or shard, keep only their metadata, or
// keep them outside of the process.
//
// [DefaultSupplier] makes informers that keep objects in memory. [NewCustomCache] makes informers that keep objects in
// a [Store], for example in the package memcached below. [New] makes an informer from any cache of controller-runtime.
// All of them take [Options], which select the objects and validate the selection.
//
// [View] makes a controller use an informer: it returns a view of the manager, and everything that is made from the
// view reads the kind from the informer and receives its events. Both styles of controllers work on a view, controllers
// of trueup.dev/reconcilers and controllers of trueup.dev/operator:
//
//	blue, err := informer.DefaultSupplier(kind, mgr, informer.Options{LabelFilters: []string{"team=blue"}})
//	...
//	view, err := informer.View(mgr, "blue-secrets", blue)
//	...
//	controller := &operator.Controller[*corev1.Secret]{
//		Config: reconcilers.NewConfig(view, nil, 10*time.Hour),
//		...
//	}
//	err = controller.SetupWithManager(ctx, view)
//
// An operator.InformerController makes the views itself. [WhileServed] is for kinds that may not be served, for example
// of a CustomResourceDefinition that is installed later.
package informer
