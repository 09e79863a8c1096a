// SPDX-License-Identifier: Apache-2.0

// Package reconcilers builds Kubernetes controllers from small reconcilers.
//
// A controller is a tree of reconcilers. The root, a [ResourceReconciler], receives requests, fetches the resource,
// initializes its conditions, and writes its status and events. All other reconcilers in the tree are [SubReconciler]
// values. The root passes the resource to them:
//
//   - [SyncReconciler] calls a function;
//   - [ChildReconciler] manages one child object, [ChildSetReconciler] manages a set of child objects;
//   - [Sequence] runs subreconcilers in order and stops at the first error, [Always] runs all of them;
//   - [Steps] runs subreconcilers when the children of others are ready, and removes them in the reverse order;
//   - [IfThen], [While], [ForEach] and [TryCatch] provide control flow;
//   - [WithFinalizer] adds a finalizer to the resource so that nested reconcilers can clean up;
//   - [WithConfig] runs nested reconcilers with another [Config], for example for another cluster;
//   - [Advice] calls functions before, after or around a reconciler;
//   - [CastResource] converts the resource to another type for nested reconcilers;
//   - [SuppressTransientErrors] suppresses the first consecutive errors of a resource;
//   - [Prune] deletes children that are no longer declared;
//   - [Retry], [Timeout], [RateLimit], [Periodic] and [Paused] decide when a nested reconciler runs;
//   - [OverrideSetup] replaces the setup of a reconciler.
//
// The package provides two more roots: [AggregateReconciler] manages a single resource that is computed from other
// state, and [AdmissionWebhookAdapter] answers admission requests with subreconcilers.
//
// A reconciler is a struct literal. It reads its clients from the [Config] in the context, see [RetrieveConfigOrDie].
// The same reconciler therefore works in production, in tests, and against another cluster.
//
//	func SiteReconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*v1.Site] {
//		return &reconcilers.ResourceReconciler[*v1.Site]{
//			Reconciler: reconcilers.Sequence[*v1.Site]{
//				ThemeReconciler(),
//				PagesReconciler(),
//			},
//			Config: c,
//		}
//	}
//
// # Passing data between reconcilers
//
// Reconcilers change the status of the resource in memory, and the root writes it once, at the end of the request.
// Other values are passed through the stash, a store that lives as long as the request: see [NewStasher].
//
// # References to other objects
//
// [Config.TrackAndGet] and [Config.TrackAndList] read objects that the resource depends on but does not own, and track
// the dependency. A watch with [EnqueueTracked] enqueues a request for each resource that depends on a changed object.
//
// # Errors and results
//
// An error stops the reconcilers that follow. The controller retries the request with back-off, whether or not the
// status was written. [ErrHaltSubReconcilers] stops the reconcilers that follow and is not a failure. [ErrQuiet] keeps
// an error out of logs and events. [ErrSkipStatusUpdate] prevents the status update. Results are combined with
// [AggregateResults].
//
// # Setup
//
// SetupWithManager validates the whole tree before the controller starts. It reports every mistake with the names of
// the reconciler and the field.
package reconcilers
