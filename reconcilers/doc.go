// SPDX-License-Identifier: Apache-2.0

// Package reconcilers composes Kubernetes controllers from small reconcilers.
//
// A controller is a tree. At its root a [ResourceReconciler] turns requests into resources and takes care of what all
// controllers have in common: fetching, conditions, the status, events. Everything below is a [SubReconciler] that is
// called with the resource:
//
//   - [SyncReconciler] runs a function of yours;
//   - [ChildReconciler] manages one object that belongs to the resource, [ChildSetReconciler] any number of them;
//   - [Sequence] runs several sub reconcilers in order, [Always] does so whether or not one fails;
//   - [IfThen], [While], [ForEach] and [TryCatch] are what their names say;
//   - [WithFinalizer] gives those below it the chance to clean up, [WithConfig] another cluster or other permissions,
//     [Advice] something to do
//     before, after or around it;
//   - [CastResource] lets those below it see the resource as another type;
//   - [SuppressTransientErrors] waits for errors to go away by themselves, [OverrideSetup] leaves out watches.
//
// There are two more roots: [AggregateReconciler] makes a single resource out of other state, and
// [AdmissionWebhookAdapter] answers admission requests with sub reconcilers.
//
// A reconciler is a struct literal. What it needs from a cluster it takes from the [Config] on the context, see
// [RetrieveConfigOrDie], so the same reconciler serves in production, in tests, and against another cluster.
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
// # What goes from one reconciler to the next
//
// The resource itself: a reconciler changes its status in memory, and the root writes it once, at the end. Values that
// are not for the status go through the stash, a store that lives as long as the request: see [NewStasher].
//
// # Objects that belong to somebody else
//
// [Config.TrackAndGet] and [Config.TrackAndList] read objects the resource depends on without owning them, and remember
// the dependency. A watch with [EnqueueTracked] turns their changes into requests for every resource that depends on
// them.
//
// # Errors and results
//
// An error stops the reconcilers that follow and is retried with back-off, whether or not the status was written.
// [ErrHaltSubReconcilers] stops them without being a failure; [ErrQuiet] keeps an error out of logs and events;
// [ErrSkipStatusUpdate] keeps the status from being written. Results are combined with [AggregateResults].
//
// # Setting up
//
// SetupWithManager validates the whole tree and reports every mistake in it with the name of the reconciler and of the
// field, before anything runs.
package reconcilers
