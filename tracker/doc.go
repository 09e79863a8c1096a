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
// # Leases
//
// Nothing has to be untracked. A track lapses after the lease of the tracker
// unless it is renewed, which happens on its own: a reconciler that still
// depends on an object tracks it again each time it runs. Make the lease longer
// than the time between two runs of an idle resource; the reconcilers package
// uses twice the sync period. Where resyncs are disabled or filtered out by a
// predicate idle resources do not run, and their tracks lapse.
//
// An observer that is gone runs no more. [Forgetter] drops what it tracks right
// away, as the ResourceReconciler of the reconcilers package does. It takes any
// object with kind, namespace and name of the observer, whose kind keeps it apart
// from others that have the same name:
//
//	if f, ok := t.(tracker.Forgetter); ok {
//		f.Forget(website)
//	}
//
// # Cost
//
// All that a tracker does costs the same however much it remembers. A lookup
// costs a map access for the object, some for each of its labels, and the
// observers that it returns. Selectors are found through one of their
// requirements, the one that the fewest others have: a label with one of at most
// 100 values, else a label that must be present. The few that require no label at
// all ("!a", "a!=b", everything) are evaluated for each object of their kind and
// namespace, and so are selectors of other types than the labels package makes.
// Observers of equal selectors share one.
//
// Tracking the same again, as every reconcile does, allocates nothing, provided
// that the kind of the observer is known: to the scheme, or set on it. Neither
// renewing nor looking up waits for others that do the same; both wait while a
// new track is added or removed, about a microsecond each.
//
// A reference takes about 240 to 760 bytes, names and labels included: less when it is
// shared with other observers, more when it is a selector. The memory of a track
// that lapsed is given back within a 32nd of the lease, by whoever uses the
// tracker next: sixteen tracks at a time at most, so that nobody has to pay for
// all. There is no goroutine to stop.
package tracker
