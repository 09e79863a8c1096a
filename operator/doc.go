// SPDX-License-Identifier: Apache-2.0

// Package operator is the event style: handlers are called for what happens to resources. A [TypedWatcher] has a
// function each for resources that are added, updated and deleted, and gets the previous state; a [Reconciler] has one
// function for everything, and may carry state from one attempt to the next.
//
// Both run on the engine of package reconcilers, which is driven by state and not by events: what has happened is
// derived by comparing a resource with what was last handled. So there is one call at a time for a resource, always
// with its present state; a retry never works on an old one; a change that was missed is made up for; and many changes
// in a row lead to few calls. What is not there is each step on the way.
//
// A [Controller] runs handlers. [OpinionatedWatcher] and [OpinionatedReconciler] wrap them so that nothing is missed
// while the controller is down. A [RetryPolicy] tells when to try again. [WithEdge] is what all of that is made of: it
// tells any tree of reconcilers what has happened, see [EdgeFrom] and [PreviousFrom].
//
// Resources come from the cache of the manager, or from an [Informer] of their own, see [WithInformer]: one that
// selects, one that keeps only metadata, or a [CustomCacheInformer] that keeps objects in any [Store].
package operator
