// SPDX-License-Identifier: Apache-2.0

// Package shards divides the objects of a controller among several replicas that run at the same time.
//
// Without it, a controller with several replicas elects one of them, and the others wait. With it, each replica is a
// shard: it caches and reconciles only the objects that carry its name in a label. Another program decides which object
// gets which name: the sharder of github.com/timebertt/kubernetes-controller-sharding, which runs in the cluster. This
// package implements the part of its protocol that controllers must follow:
//
//   - Each replica holds a Lease, whose name and holder are the name of the shard. Controllers run only while the
//     replica holds its Lease. A replica that ends releases it, and its objects are assigned to others at once.
//   - The caches have only the objects whose label names the shard.
//   - When the sharder wants to move an object, it sets a drain label. The replica then finishes its reconcile, removes
//     both labels, and does not reconcile the object again.
//
// [New] describes the replica. [Shard.ManagerOptions] changes the options of a manager, and the field Shard of
// reconcilers.Config makes the controllers of this module follow the protocol. [Shard.Reconciler] and [Shard.Predicate]
// do the same for controllers that use controller-runtime alone:
//
//	shard, err := shards.New(shards.Options{Ring: "websites", Kinds: []client.Object{&Website{}, &corev1.ConfigMap{}}})
//	…
//	options, err := shard.ManagerOptions(restConfig, ctrl.Options{Scheme: scheme})
//	…
//	mgr, err := ctrl.NewManager(restConfig, options)
//	…
//	config := reconcilers.NewConfig(mgr, &Website{}, 0)
//	config.Shard = shard
//
// # What a replica does not see
//
// An object that moves to another shard is deleted from the cache, although it still exists. So a controller must not
// conclude from its cache that an object was deleted. The reconcilers of this module ask the API server: a watcher of
// package operator is told about a deletion only if the object no longer exists, and a ReconcileAbsent is not called
// for a resource that another replica has.
//
// A child without a label is in no cache. The sharder labels children when they are created, with a webhook. The
// reconcilers of this module also label the children that they create, so that they find them without the webhook. They
// never change a label that a child has: only the sharder moves objects.
//
// # A replica that was paused
//
// A process that was paused for longer than its Lease lasts does not know this when it continues. Until its Lease is
// renewed, its client refuses to write, with [ErrLapsed], and its controllers start no request. The replica measures
// the time since the last renewal with its own clock.
package shards
