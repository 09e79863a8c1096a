// SPDX-License-Identifier: Apache-2.0

// Package guard prevents reconcilers from acting on caches that are older than their own last writes.
//
// A cache follows the API server with a delay. A reconcile right after a write may read a cache that does not contain
// the write, and would repeat it: it creates a second child, its update conflicts, or it clears a finalizer because of
// an outdated list. The guard prevents that in three steps:
//
//   - The client of a [Cluster] records the writes of a request in its [Journal]: the object, and its resource version
//     after the write.
//   - When the request has ended, a [Gate] keeps the journal if it is not empty.
//   - Before the next reconcile of the same request, the gate compares the journal to the caches. While a cache is
//     behind, the reconcile is deferred.
//
// The gate queries the state of caches and does not depend on events, so a lost or merged event cannot block a request.
// Nothing is kept for requests whose writes were observed. The wait is limited: after the timeout, and after a write
// with an unknown outcome, the request runs and reads from the API server once. A request that depends on objects
// missing in the caches is repeated, because the caches may never deliver an event for them.
//
// The design follows the consistency store of kube-controller-manager (KEP-5647), extended to deletions, to finalizers
// and to writes without a response.
package guard
