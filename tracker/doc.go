// SPDX-License-Identifier: Apache-2.0

// Package tracker remembers which resources depend on objects that they do not
// own, so that a change of such an object reconciles those resources.
//
// Owner references connect a child to its owner. They do not cover a ConfigMap that many websites read their theme
// from. With a [Tracker], each website tracks the theme while it is reconciled, and an event of the theme looks up the
// websites that track it.
//
//	// in a reconciler: website watches the theme
//	err := t.TrackObject(theme, website)
//
//	// in the event handler: who watches this object?
//	observers, err := t.GetObservers(event.Object)
//
// Reconcilers rarely call a tracker directly. The Config of the reconcilers package combines tracking with reading, in
// TrackAndGet and TrackAndList, and its EnqueueTracked is the event handler. The controller must watch each tracked
// kind: without a watch it receives no events to look up.
//
// # What can be tracked
//
// A [Reference] names one object, or selects any number by label, in one
// namespace or in all. Either may refer to objects that do not exist yet: their
// creation is an event like any other. The version of a kind does not matter.
//
// # Leases
//
// Tracks need not be removed. A track expires after the lease of the tracker unless it is renewed: a reconciler that
// still depends on an object tracks it again each time it runs.
//
// An idle resource is not reconciled and renews nothing. If the controller holds the tracks of the resource, see
// [Holder], as the root reconcilers of the reconcilers package do, they do not expire. They end with a later reconcile
// that does not renew them, once the lease is over. Without this, make the lease longer than the time between two runs
// of an idle resource.
//
// A deleted observer is no longer reconciled. [Forgetter] drops its tracks immediately, as the ResourceReconciler of
// the reconcilers package does. It takes any object with the kind, namespace and name of the observer. The kind
// distinguishes observers that have the same name:
//
//	if f, ok := t.(tracker.Forgetter); ok {
//		f.Forget(website)
//	}
//
// # Cost
//
// The cost of each operation does not depend on the number of tracks. A lookup takes one map access for the object, a
// few for each of its labels, and the time to return the observers. Selectors are indexed by one of their requirements,
// the one that the fewest other selectors share: a label with one of at most 100 values, otherwise a label that must be
// present. Selectors that require no label ("!a", "a!=b", everything) are evaluated for each object of their kind and
// namespace. So are selectors of types that are not from the labels package. Observers of equal selectors share one.
//
// Renewing a track, as every reconcile does, allocates nothing if the kind of the observer is registered in the scheme
// or set on the object. Renewals and lookups do not wait for each other. Both wait while a new track is added or
// removed, about a microsecond each.
//
// A reference takes about 240 to 760 bytes, names and labels included: less when other observers share it, more when it
// is a selector. The memory of an expired track is released within a 32nd of the lease, by the next calls of the
// tracker. Each call releases at most sixteen tracks, so that no single call is slow. The tracker starts no goroutine.
package tracker
