// SPDX-License-Identifier: Apache-2.0

package converge

import "slices"

// Fault is something that goes otherwise than most of the time. Conflicts, missing and existing objects are never made
// up: somebody else really writes, deletes or creates.
type Fault string

// Faults of requests to the API server, and of calls to systems outside.
const (
	// CrashBefore ends the process before a write has an effect.
	CrashBefore Fault = "crash-before"
	// CrashAfter ends the process after a write has had its effect, and before the answer.
	CrashAfter Fault = "crash-after"
	// TimeoutApplied has a write time out although it has an effect.
	TimeoutApplied Fault = "timeout-applied"
	// TimeoutLost has a request time out that has no effect.
	TimeoutLost Fault = "timeout-lost"
	// TooManyRequests has a request fail with status 429.
	TooManyRequests Fault = "too-many-requests"
	// ServerError has a request fail with status 500.
	ServerError Fault = "server-error"
	// Conflict has somebody else annotate the object just before it is written.
	Conflict Fault = "conflict"
	// Exists has the same object be there just before it is created, as if an earlier attempt had got through late.
	Exists Fault = "exists"
	// Taken has somebody else have an object of the same name just before it is created, with another controller if it is
	// in a namespace, and delete it a moment later. When all is quiet the process is started again, because nobody else
	// would tell the reconciler.
	Taken Fault = "taken"
	// TakenUnnoticed is Taken, and nothing is started again: only a reconciler that tries again by itself gets the name in
	// the end. Only if it is asked for, because many take any object of the right name for their own.
	TakenUnnoticed Fault = "taken-unnoticed"
	// Deleted has somebody else delete an object just before it is written. Only objects of the reconciler are deleted.
	Deleted Fault = "deleted"
	// Recreated has somebody else delete an object and create it again, just before it is written or deleted. Only objects
	// of the reconciler are.
	Recreated Fault = "recreated"
	// HandOver ends the process during a write, which has its effect only when the next process has made its first
	// reconcile. Not for what the API server names, nor for what is created without an owner: nobody could clean that up.
	HandOver Fault = "hand-over"
)

// Faults of watches and caches.
const (
	// LagRead has the cache of a kind miss an event, and all later ones, until something has been read from it once.
	LagRead Fault = "lag-read"
	// LagReconcile has the cache of a kind miss an event, and all later ones, until the end of the next reconcile that
	// starts.
	LagReconcile Fault = "lag-reconcile"
	// LagLong has the cache of a kind miss an event, and all later ones, for 100 ms or five reconciles. Other lags do not
	// last longer than that, either.
	LagLong Fault = "lag-long"
	// Relist is LagLong, at whose end the kind is listed anew: what happened in between is seen as one change, or not at
	// all.
	Relist Fault = "relist"
	// Resync has the cache repeat everything as updates that change nothing, after an event.
	Resync Fault = "resync"
	// ListOrder has lists from a cache come in another order each time.
	ListOrder Fault = "list-order"
	// Stale has a process begin with a cache that has not seen the last events of a kind. Only with [TimeTravel], or if it
	// is asked for.
	Stale Fault = "stale-start"
)

// Faults of everything else.
const (
	// Restart ends the process while no reconcile is going on.
	Restart Fault = "restart"
	// Meanwhile has users take their next steps in the middle of a reconcile, just before a request.
	Meanwhile Fault = "meanwhile"
	// Overtaken has another reconcile of the same process that waits for an answer, too, come to its end before a request
	// is answered. Only where several reconciles go on at once: with several workers, or several controllers.
	Overtaken Fault = "overtaken"
	// Late has an actor act only when all else is quiet.
	Late Fault = "late"
	// Early has an actor act at once, in the middle of a reconcile.
	Early Fault = "early"
	// ChildDeleted has somebody delete an object of the reconciler when all is quiet. Jobs and pods that have come to
	// their end are left alone.
	ChildDeleted Fault = "child-deleted"
	// Flap has a Deployment or a StatefulSet of the reconciler be unavailable when all is quiet, until all is quiet again.
	// Only in a world with [Deployments] or [StatefulSets] that become ready.
	Flap Fault = "flap"
	// Drift has somebody change an object of the reconciler when all is quiet. Only if it is asked for, because it is not
	// everybody's task to undo that.
	Drift Fault = "drift"
)

// allFaults are all that there are.
var allFaults = []Fault{
	CrashBefore, CrashAfter, TimeoutApplied, TimeoutLost, TooManyRequests, ServerError, Conflict, Exists, Taken,
	TakenUnnoticed, Deleted, Recreated, HandOver,
	LagRead, LagReconcile, LagLong, Relist, Resync, ListOrder, Stale,
	Restart, Meanwhile, Overtaken, Late, Early, ChildDeleted, Flap, Drift,
}

// askedFor are the faults that only happen when they are asked for.
var askedFor = []Fault{Drift, TakenUnnoticed}

// faultSet is a set of faults.
type faultSet uint32

func setOf(faults ...Fault) faultSet {
	var set faultSet
	for _, fault := range faults {
		set |= 1 << slices.Index(allFaults, fault)
	}
	return set
}

func (s faultSet) has(fault Fault) bool { return s&setOf(fault) != 0 }

// faults lists the set, in the order of allFaults.
func (s faultSet) faults() []Fault {
	var faults []Fault
	for i, fault := range allFaults {
		if s&(1<<i) != 0 {
			faults = append(faults, fault)
		}
	}
	return faults
}
