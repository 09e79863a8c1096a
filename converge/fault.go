// SPDX-License-Identifier: Apache-2.0

package converge

import "trueup.dev/converge/internal/inject"

// Fault is a failure that is injected at one point of a run. Conflicts, missing objects and existing objects are not
// simulated responses: another client writes, deletes or creates the object.
type Fault = inject.Fault

// Faults of requests to the API server, and of calls to external systems.
const (
	// FaultCrashBefore ends the process before a write takes effect.
	FaultCrashBefore Fault = "crash-before"
	// FaultCrashAfter ends the process after a write took effect, before the response.
	FaultCrashAfter Fault = "crash-after"
	// FaultTimeoutApplied lets a write time out although it takes effect.
	FaultTimeoutApplied Fault = "timeout-applied"
	// FaultTimeoutLost lets a request time out without an effect.
	FaultTimeoutLost Fault = "timeout-lost"
	// FaultTooManyRequests fails a request with status 429.
	FaultTooManyRequests Fault = "too-many-requests"
	// FaultServerError fails a request with status 500.
	FaultServerError Fault = "server-error"
	// FaultQuota refuses to create objects of a kind in a namespace, as a quota that is exceeded, until the controller is
	// idle. It is disabled by default.
	FaultQuota Fault = "quota"
	// FaultForbidden refuses requests with the verb and the resource of a request, as if a role was taken away, until the
	// controller is idle. It is disabled by default.
	FaultForbidden Fault = "forbidden"
	// FaultConflict annotates the object as another client, just before it is written.
	FaultConflict Fault = "conflict"
	// FaultExists creates the same object just before it is created, as if an earlier attempt took effect late.
	FaultExists Fault = "exists"
	// FaultTaken creates an object of the same name as another client, just before it is created, and deletes it a moment
	// later. The object has another controller if it is in a namespace. All processes restart when the controller is idle,
	// because no event reports to the reconciler that the name is free.
	FaultTaken Fault = "taken"
	// FaultTakenUnnoticed is FaultTaken without the restart: only a reconciler that retries gets the name in the end. It
	// is disabled by default, because many reconcilers adopt each object that has the right name.
	FaultTakenUnnoticed Fault = "taken-unnoticed"
	// FaultDeleted deletes an object as another client, just before it is written. Only objects that the reconciler has
	// created are deleted.
	FaultDeleted Fault = "deleted"
	// FaultRecreated deletes an object and creates it again as another client, just before it is written or deleted. Only
	// objects that the reconciler has created are recreated.
	FaultRecreated Fault = "recreated"
	// FaultHandOver ends the process during a write, which takes effect only after the first reconcile of the next
	// process. It does not apply to objects whose name the API server generates, nor to the creation of objects without an
	// owner: these would be unrecoverable.
	FaultHandOver Fault = "hand-over"
)

// Faults of watches and caches.
const (
	// FaultLagRead delays a watch event and all later ones of the kind until the cache has been read once.
	FaultLagRead Fault = "lag-read"
	// FaultLagReconcile delays a watch event and all later ones of the kind until the end of the next reconcile that
	// starts.
	FaultLagReconcile Fault = "lag-reconcile"
	// FaultLagLong delays a watch event and all later ones of the kind for 100 ms or five reconciles. No other delay lasts
	// longer.
	FaultLagLong Fault = "lag-long"
	// FaultRelist is FaultLagLong that ends with a list: the changes in between become visible as one change, or not at
	// all.
	FaultRelist Fault = "relist"
	// FaultResync repeats, after a watch event, all objects of the cache as updates without a change.
	FaultResync Fault = "resync"
	// FaultListOrder returns lists from a cache in a different order each time.
	FaultListOrder Fault = "list-order"
	// FaultStaleStart starts a process with an old cache of a kind. It is enabled by [TimeTravel] and by [Scenario.With].
	FaultStaleStart Fault = "stale-start"
)

// Faults of processes, users, actors and dependents.
const (
	// FaultRestart ends the process while no reconcile is running: when the controller is idle, or when another program
	// makes a request that one of its webhooks is called for. That request then fails, unless the webhook ignores
	// failures.
	FaultRestart Fault = "restart"
	// FaultMeanwhile performs the next steps of the users during a reconcile, just before a request.
	FaultMeanwhile Fault = "meanwhile"
	// FaultDisturbance performs one of [Scenario.Disturbances] just before a request, or when the controller is idle.
	FaultDisturbance Fault = "disturbance"
	// FaultOvertaken finishes another reconcile before a request is answered. It applies where several reconciles run at
	// once: with several workers, several controllers, or several programs.
	FaultOvertaken Fault = "overtaken"
	// FaultLate delays an actor until everything else is idle.
	FaultLate Fault = "late"
	// FaultEarly makes an actor act at once, during a reconcile.
	FaultEarly Fault = "early"
	// FaultChildDeleted deletes an object that the reconciler has created, when the controller is idle. Jobs and pods that
	// have finished are not deleted.
	FaultChildDeleted Fault = "child-deleted"
	// FaultFlap makes a Deployment or StatefulSet that the reconciler has created unavailable when the controller is idle,
	// until it is idle again. It requires [Deployments] or [StatefulSets] that become ready in [Scenario.World].
	FaultFlap Fault = "flap"
	// FaultDrift changes an object that the reconciler has created, when the controller is idle. It is disabled by
	// default, because not every reconciler reverts such changes.
	FaultDrift Fault = "drift"
)
