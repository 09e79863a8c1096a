// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
)

// Fault is a failure that is injected at one point of a run. Conflicts, missing objects and existing objects are not
// simulated responses: another client writes, deletes or creates the object.
type Fault = inject.Fault

// Faults of requests to the API server, and of calls to external systems.
const (
	// FaultCrashBefore ends the process before a write takes effect.
	FaultCrashBefore Fault = inject.CrashBefore
	// FaultCrashAfter ends the process after a write took effect, before the response.
	FaultCrashAfter Fault = inject.CrashAfter
	// FaultTimeoutApplied lets a write time out although it takes effect.
	FaultTimeoutApplied Fault = inject.TimeoutApplied
	// FaultTimeoutLost lets a request time out without an effect.
	FaultTimeoutLost Fault = inject.TimeoutLost
	// FaultTooManyRequests fails a request with status 429.
	FaultTooManyRequests Fault = inject.TooManyRequests
	// FaultServerError fails a request with status 500.
	FaultServerError Fault = inject.ServerError
	// FaultQuota refuses to create objects of a kind in a namespace, as a quota that is exceeded, until the controller is
	// idle. It is disabled by default.
	FaultQuota Fault = inject.Quota
	// FaultForbidden refuses requests with the verb and the resource of a request, as if a role was taken away, until the
	// controller is idle. It is disabled by default.
	FaultForbidden Fault = inject.Forbidden
	// FaultKindRemoved deletes the CustomResourceDefinition of a kind as another client, and creates it again after 16 s.
	// Until then, requests for objects of the kind fail with status 404. Processes that start meanwhile do not know the
	// kind: their requests fail with an error for which meta.IsNoMatchError is true. It applies to kinds other than the
	// kind of the primary objects, if the reconciler has created all objects of the kind. It is disabled by default.
	FaultKindRemoved Fault = inject.KindRemoved
	// FaultConflict annotates the object as another client, just before it is written.
	FaultConflict Fault = inject.Conflict
	// FaultExists creates the same object just before it is created, as if an earlier attempt took effect late.
	FaultExists Fault = inject.Exists
	// FaultTaken creates an object of the same name as another client, just before it is created, and deletes it a moment
	// later. The object has another controller if it is in a namespace. All processes restart when the controller is idle,
	// because no event reports to the reconciler that the name is free.
	FaultTaken Fault = inject.Taken
	// FaultTakenUnnoticed is FaultTaken without the restart: only a reconciler that retries gets the name in the end. It
	// is disabled by default, because many reconcilers adopt each object that has the right name.
	FaultTakenUnnoticed Fault = inject.TakenUnnoticed
	// FaultDeleted deletes an object as another client, just before it is written. Only objects that the reconciler has
	// created are deleted.
	FaultDeleted Fault = inject.Deleted
	// FaultRecreated deletes an object and creates it again as another client, just before it is written or deleted. Only
	// objects that the reconciler has created are recreated.
	FaultRecreated Fault = inject.Recreated
	// FaultHandOver ends the process during a write, which takes effect only after the first reconcile of the next
	// process. It does not apply to objects whose name the API server generates, nor to the creation of objects without an
	// owner: these would be unrecoverable.
	FaultHandOver Fault = inject.HandOver
	// FaultPause stops a process for three times the duration of its Lease, see [ApplyOptions], or for a minute if it has
	// none, as a machine that is suspended. Everything else goes on. A write takes effect when the process continues,
	// except those to which FaultHandOver does not apply. The response to these and to reads, which may be outdated then,
	// arrives. It is disabled by default.
	FaultPause Fault = inject.Pause
)

// Faults of watches and caches.
const (
	// FaultLagRead delays a watch event and all later ones of the kind until the cache has been read once.
	FaultLagRead Fault = inject.LagRead
	// FaultLagReconcile delays a watch event and all later ones of the kind until the end of the next reconcile that
	// starts.
	FaultLagReconcile Fault = inject.LagReconcile
	// FaultLagLong delays a watch event and all later ones of the kind for 100 ms or five reconciles. No other delay lasts
	// longer.
	FaultLagLong Fault = inject.LagLong
	// FaultRelist is FaultLagLong that ends with a list: the changes in between become visible as one change, or not at
	// all.
	FaultRelist Fault = inject.Relist
	// FaultResync repeats, after a watch event, all objects of the cache as updates without a change.
	FaultResync Fault = inject.Resync
	// FaultListOrder returns lists from a cache in a different order each time.
	FaultListOrder Fault = inject.ListOrder
	// FaultStaleStart starts a process with an old cache of a kind. It is enabled by [TimeTravel] and by [Scenario.With].
	FaultStaleStart Fault = inject.StaleStart
)

// Faults of processes, users, actors and dependents.
const (
	// FaultRestart ends the process while no reconcile is running: when the controller is idle, or when another program
	// makes a request that one of its webhooks is called for. That request then fails, unless the webhook ignores
	// failures.
	FaultRestart Fault = inject.Restart
	// FaultMeanwhile performs the next steps of the users during a reconcile, just before a request.
	FaultMeanwhile Fault = inject.Meanwhile
	// FaultDisturbance performs one of [Scenario.Disturbances] just before a request, or when the controller is idle.
	FaultDisturbance Fault = inject.Disturbance
	// FaultOvertaken finishes another reconcile before a request is answered. It applies where several reconciles run at
	// once: with several workers, several controllers, or several programs.
	FaultOvertaken Fault = inject.Overtaken
	// FaultLate delays an actor until everything else is idle.
	FaultLate Fault = inject.Late
	// FaultEarly makes an actor act at once, during a reconcile.
	FaultEarly Fault = inject.Early
	// FaultChildDeleted deletes an object that the reconciler has created, when the controller is idle. Jobs and pods that
	// have finished are not deleted.
	FaultChildDeleted Fault = inject.ChildDeleted
	// FaultFlap makes a Deployment or StatefulSet that the reconciler has created unavailable when the controller is idle,
	// until it is idle again. It requires [Deployments] or [StatefulSets] that become ready in [Scenario.World].
	FaultFlap Fault = inject.Flap
	// FaultDrift changes an object that the reconciler has created, when the controller is idle. It is disabled by
	// default, because not every reconciler reverts such changes.
	FaultDrift Fault = inject.Drift
)

// Oracle is a check of each run.
type Oracle = finding.Oracle

const (
	// OracleQuiescence fails when reconciles do not stop, or when one of them does not return.
	OracleQuiescence Oracle = finding.OracleQuiescence
	// OracleEndState fails when the state at a [Settle] is not [Scenario.Desired], or not the state of the run without
	// faults.
	OracleEndState Oracle = finding.OracleEndState
	// OracleIdempotence fails when another reconcile writes, although nothing has changed, or when each reconcile makes
	// an update or a patch that changes nothing. An apply that changes nothing is not a failure.
	OracleIdempotence Oracle = finding.OracleIdempotence
	// OracleDuplicates fails when objects are created or deleted more often than without faults, and no fault explains it.
	OracleDuplicates Oracle = finding.OracleDuplicates
	// OracleDeletion fails when a deleted primary object still exists, when one of its dependents does, or when the first
	// effect outside of the cluster precedes the finalizer.
	OracleDeletion Oracle = finding.OracleDeletion
	// OracleStatus fails when a status does not describe the generation that it names.
	OracleStatus Oracle = finding.OracleStatus
	// OracleErrors fails when a reconciler panics, or returns a terminal error for a temporary one. A swallowed error has
	// the effect that work is not done, which OracleEndState reports.
	OracleErrors Oracle = finding.OracleErrors
	// OracleSharedObjects fails when an object of the cache is modified.
	OracleSharedObjects Oracle = finding.OracleSharedObjects
	// OracleLeaks fails when goroutines outlive their process.
	OracleLeaks Oracle = finding.OracleLeaks
	// OracleAdvice reports dangerous requests that did no harm. It fails only if [Scenario.Strict] is set.
	OracleAdvice Oracle = finding.OracleAdvice
	// OracleAssignment fails when a program writes what is not assigned to it, or when an object is assigned to no program
	// that runs, or to several. It checks programs with [Program.Assigned].
	OracleAssignment Oracle = finding.OracleAssignment
)

// allOracles lists the oracles. finding.OracleScenario cannot be turned off, and is not one of them.
var allOracles = []Oracle{
	OracleQuiescence, OracleEndState, OracleIdempotence, OracleDuplicates, OracleDeletion, OracleStatus, OracleErrors,
	OracleSharedObjects, OracleLeaks, OracleAdvice, OracleAssignment,
}

// Violation is a finding of an oracle.
type Violation struct {
	Oracle Oracle
	// Cause classifies the finding.
	Cause Cause
	// About names the object of the finding. It is empty if the finding is not about one object.
	About string
	// Message describes what is wrong.
	Message string
	// Details are further lines.
	Details []string
}

func (v Violation) String() string { return string(v.Oracle) + ": " + v.Message }

// Cause classifies the findings of an oracle. Programs compare causes; messages are for people and may change.
type Cause = finding.Cause

// Causes of [OracleQuiescence].
const (
	// CauseNotQuiet is for reconciles that do not stop.
	CauseNotQuiet Cause = finding.CauseNotQuiet
	// CauseHangs is for a reconcile that does not return.
	CauseHangs Cause = finding.CauseHangs
	// CauseHotLoop is for an object that is reconciled again and again without a change.
	CauseHotLoop Cause = finding.CauseHotLoop
	// CauseFight is for two writers that change the same field in turn. It is also one of [OracleIdempotence]. A writer is
	// a program, an actor, a controller, or the reconciles of one request.
	CauseFight Cause = finding.CauseFight
	// CauseChain is for several writers, where each change leads to the next change of another writer, without end.
	CauseChain Cause = finding.CauseChain
)

// Causes of [OracleEndState]. CauseUnexpected is also one of [OracleDeletion].
const (
	// CauseNotDesired is for a state that Scenario.Desired rejects.
	CauseNotDesired Cause = finding.CauseNotDesired
	// CauseMissing is for an object that should exist.
	CauseMissing Cause = finding.CauseMissing
	// CauseUnexpected is for an object that should not exist.
	CauseUnexpected Cause = finding.CauseUnexpected
	// CauseDifferent is for an object whose content differs from the content in the run without faults.
	CauseDifferent Cause = finding.CauseDifferent
	// CauseOverwritten is for a write that reverts a change of another client.
	CauseOverwritten Cause = finding.CauseOverwritten
)

// Causes of [OracleIdempotence].
const (
	// CauseRedundantWrite is for a reconcile that writes each time.
	CauseRedundantWrite Cause = finding.CauseRedundantWrite
	// CauseMissedWork is for a reconcile that writes once: it was due earlier.
	CauseMissedWork Cause = finding.CauseMissedWork
	// CauseNoOpWrite is for an update or a patch in each reconcile that changes nothing.
	CauseNoOpWrite Cause = finding.CauseNoOpWrite
)

// Causes of [OracleDuplicates].
const (
	// CauseDuplicate is for several objects whose names the API server has generated, where there should be fewer.
	CauseDuplicate Cause = finding.CauseDuplicate
	// CauseDeletedAgain is for an object that is deleted too often.
	CauseDeletedAgain Cause = finding.CauseDeletedAgain
	// CauseCreatedAgain is for an object that is created too often.
	CauseCreatedAgain Cause = finding.CauseCreatedAgain
	// CauseLiveAtOnce is for too many objects at the same time.
	CauseLiveAtOnce Cause = finding.CauseLiveAtOnce
)

// Causes of [OracleDeletion].
const (
	// CauseNotDeleted is for a primary object whose finalizers are not removed.
	CauseNotDeleted Cause = finding.CauseNotDeleted
	// CauseDeadlock is for objects whose finalizers wait for each other's deletion.
	CauseDeadlock Cause = finding.CauseDeadlock
	// CauseLeftOver is for a dependent that outlives all primary objects.
	CauseLeftOver Cause = finding.CauseLeftOver
	// CauseUnprotected is for an effect outside of the cluster that precedes the finalizer.
	CauseUnprotected Cause = finding.CauseUnprotected
)

// Causes of [OracleStatus].
const (
	// CauseObservedGeneration is for an observedGeneration of another generation.
	CauseObservedGeneration Cause = finding.CauseObservedGeneration
	// CauseTransitionTime is for a lastTransitionTime that changes although the status of the condition does not.
	CauseTransitionTime Cause = finding.CauseTransitionTime
	// CauseReadyBeforeRollout is for an object that becomes Ready before a workload is rolled out.
	CauseReadyBeforeRollout Cause = finding.CauseReadyBeforeRollout
	// CauseReadyBeforeDependent is for an object that becomes Ready before a dependent exists.
	CauseReadyBeforeDependent Cause = finding.CauseReadyBeforeDependent
	// CauseReadyUnavailable is for an object that is Ready although a workload is not available.
	CauseReadyUnavailable Cause = finding.CauseReadyUnavailable
)

// Causes of [OracleErrors], [OracleSharedObjects] and [OracleLeaks].
const (
	// CausePanic is for a reconcile that panics.
	CausePanic Cause = finding.CausePanic
	// CauseConversion is for an object that a conversion webhook cannot convert.
	CauseConversion Cause = finding.CauseConversion
	// CauseForbidden is for a request that the roles do not allow.
	CauseForbidden Cause = finding.CauseForbidden
	// CauseTerminalError is for a terminal error that wraps a temporary one.
	CauseTerminalError Cause = finding.CauseTerminalError
	// CauseCacheModified is for an object of the cache that was modified.
	CauseCacheModified Cause = finding.CauseCacheModified
	// CauseGoroutines is for goroutines that outlive their process.
	CauseGoroutines Cause = finding.CauseGoroutines
)

// Causes of [OracleAdvice].
const (
	// CauseUnconditionalDelete is for a delete without a precondition that deletes another object than the cache has.
	CauseUnconditionalDelete Cause = finding.CauseUnconditionalDelete
	// CauseUnconditionalUpdate is for an update without a resource version that overwrites a change.
	CauseUnconditionalUpdate Cause = finding.CauseUnconditionalUpdate
)

// Causes of [OracleAssignment].
const (
	// CauseNotAssigned is for a write of what is not assigned to the program.
	CauseNotAssigned Cause = finding.CauseNotAssigned
	// CauseUnassigned is for an object that is assigned to no program that runs, or to several.
	CauseUnassigned Cause = finding.CauseUnassigned
)

// CauseScenario is for a scenario that fails by itself: a step, an actor, or the setup of the reconciler.
const CauseScenario Cause = finding.CauseScenario
