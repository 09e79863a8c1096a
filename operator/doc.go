// SPDX-License-Identifier: Apache-2.0

// Package operator implements the event style: a controller calls handlers when resources change. A [TypedWatcher] has
// one method each for added, updated and deleted resources, and receives the previous state. A [Reconciler] has one
// function for all actions, and can carry state from one attempt to the next.
//
// Both run on the engine of package reconcilers, which is driven by state and not by events. It derives the action by
// comparing a resource with the state that was last handled. Therefore calls for one resource never overlap, each call
// receives the current state, a retry never uses an old state, a missed change is handled later, and many changes in a
// row lead to few calls. Intermediate states are not delivered.
//
// A [Controller] runs handlers. [OpinionatedWatcher] and [NewOpinionated] wrap handlers so that they miss
// nothing while the controller is down. A [RetryPolicy] decides when to retry. All of them are built on [WithEdge],
// which derives the action for any tree of reconcilers, see [EdgeFrom] and [PreviousFrom].
//
// Resources come from the cache of the manager, or from an informer of their own, see [trueup.dev/informer.View]. An
// [InformerController] runs handlers on informers.
package operator
