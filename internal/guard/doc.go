// SPDX-License-Identifier: Apache-2.0

// Package guard keeps reconcilers from acting on caches that are older than their own last writes.
//
// A cache follows the API server with a delay. A reconcile that follows a write at once may not see that write yet, and would do it again: a second
// child, an update that conflicts, a finalizer cleared on the word of an old list. The guard prevents that in three steps:
//
//   - The client of a [Cluster] notes in the [Journal] of a request what is written on the way: which object, and its resource version after the write.
//   - When the request has ended, a [Gate] keeps the journal, if there is anything in it.
//   - Before the next reconcile of the same request the gate compares the journal to the caches. As long as a cache is behind, the reconcile is put off.
//
// Caches are asked for their state and not listened to, so no lost or merged event can make a request wait for ever, and nothing is kept for requests whose
// writes have been seen. A wait is bounded: after it, and after a write whose outcome is not known, the request is let through and reads from the
// API server for once. One that depends on what the caches do not have is made again, because they may never tell of it.
//
// The idea is that of kube-controller-manager's consistency store (KEP-5647), extended to deletions, to finalizers and to writes that got no answer.
package guard
