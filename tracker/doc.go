// SPDX-License-Identifier: Apache-2.0

// Package tracker remembers which resources depend on objects that they do not
// own, so that a change of such an object reconciles those resources.
//
// Owner references answer "whose child is this?". They have no answer for a
// ConfigMap that a dozen websites take their theme from. A [Tracker] has: each
// website tracks the theme while it is reconciled, and an event of the theme
// looks up who is tracking it.
//
//	// in a reconciler: website watches the theme
//	err := t.TrackObject(theme, website)
//
//	// in the event handler: who watches this object?
//	observers, err := t.GetObservers(event.Object)
//
// Reconcilers rarely call it themselves. The Config of the reconcilers package
// combines tracking with reading, in TrackAndGet and TrackAndList, and its
// EnqueueTracked is the event handler. A kind that is tracked must be watched;
// without a watch for the kind there are no events to look up.
//
// # What can be tracked
//
// A [Reference] names one object, or selects any number by label, in one
// namespace or in all. Either may refer to objects that do not exist yet: their
// creation is an event like any other. The version of a kind does not matter.
//
// # Leases instead of untracking
//
// Nothing is ever untracked. A track lapses after the lease of the tracker
// unless it is renewed, which happens on its own: a reconciler that still
// depends on an object tracks it again each time it runs. Make the lease longer
// than the time between two runs of an idle resource; the reconcilers package
// uses twice the sync period. Where resyncs are disabled or filtered out by a
// predicate idle resources do not run, and their tracks lapse.
//
// # Cost
//
// Tracking takes constant time and the memory of tracks that lapsed is reclaimed
// when the next is made. A lookup takes the time of one map access, plus one
// evaluation for every distinct selector on the kind and namespace of the
// object, plus the observers it returns. Lookups do not wait for each other.
package tracker
