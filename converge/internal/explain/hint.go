// SPDX-License-Identifier: Apache-2.0

package explain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
)

// hintRow is a hint for the violations of a cause.
type hintRow struct {
	oracle finding.Oracle
	// cause is empty for all causes.
	cause finding.Cause
	// faults are the faults that the row is about: the schedule has one of them. 0 stands for all schedules.
	faults inject.Set
	// shown is what the timeline must show, or nil if the violation is enough.
	shown clue
	hint  string
}

// hintTable lists the hints. The first row that matches applies. If none does, there is no hint: a wrong one costs more
// time than it saves.
var hintTable = []hintRow{
	{oracle: finding.OracleScenario, hint: "the scenario fails without any fault"},

	// Duplicates: creations come before deletions, because what is created twice is often deleted afterwards.
	{
		oracle: finding.OracleDuplicates, shown: createdTwice(firstIsNotInCache),
		hint: "created again because an earlier creation was not visible: use a name that does not change, or record the " +
			"name before creating",
	},
	{
		oracle: finding.OracleDuplicates, shown: createdTwice(firstIsLost),
		hint: lostCreationHint,
	},
	{
		oracle: finding.OracleDuplicates, shown: createdTwice(firstIsNotRecorded),
		hint: "created again because the reconcile that created it first failed or ended before it had recorded that: " +
			"use a name that does not change, or record the name before creating",
	},
	{
		oracle: finding.OracleDuplicates, shown: isLostAndDeleted,
		hint: "a creation that failed had taken effect: after an error, read what exists before undoing anything",
	},
	{
		oracle: finding.OracleDuplicates, cause: finding.CauseDeletedAgain, shown: deletesAfterStaleRead,
		hint: "a deletion was based on a stale cache: use preconditions (UID, resource version), and read from the API " +
			"server before an irreversible action",
	},
	{
		oracle: finding.OracleDuplicates, faults: inject.SetOf(inject.StaleStart), shown: writesAfterStaleStart,
		hint: "after a restart, a cache can be in the past: before an action that cannot be undone, read from the API " +
			"server, or use preconditions (UID, resource version)",
	},
	{oracle: finding.OracleDuplicates, faults: inject.ErrorFaults, shown: swallowsError, hint: swallowedHint},

	{
		oracle: finding.OracleDeletion, shown: says("no program of this scenario removes finalizer"),
		hint: "another controller removes this finalizer in a cluster: add an actor that does, for each kind whose " +
			"controller is not in the scenario",
	},
	{
		oracle: finding.OracleDeletion, cause: finding.CauseDeadlock,
		hint: "let only one of them wait for the other: a finalizer is for the cleanup that its own object needs",
	},
	{
		oracle: finding.OracleDeletion, cause: finding.CauseUnprotected,
		hint: "store the finalizer before the first effect outside of the cluster",
	},
	{
		oracle: finding.OracleDeletion, shown: all(isStuck, isReconciledAfterDeletion, swallowsError),
		hint: "a finalizer is not removed because the cleanup swallows an error: return it, so that the request is retried",
	},
	{
		oracle: finding.OracleDeletion, shown: all(isStuck, not(isReconciledAfterDeletion)),
		hint: "no reconcile follows the deletion: does a predicate drop the update that sets deletionTimestamp?",
	},
	{
		oracle: finding.OracleDeletion, shown: all(isStuck, isReconciledAfterDeletion, not(writesAfterDeletion)),
		hint: "a finalizer is not removed: the reconciles after the deletion do not change anything",
	},
	{
		oracle: finding.OracleDeletion, shown: all(isStuck, writesAfterDeletion),
		hint: "a finalizer is not removed although the cleanup has begun: it must continue from each state, also where an " +
			"object no longer exists",
	},
	{oracle: finding.OracleDeletion, faults: inject.ErrorFaults, shown: swallowsError, hint: swallowedHint},
	{
		oracle: finding.OracleDeletion, cause: finding.CauseUnexpected, faults: inject.SetOf(inject.Restart, inject.Resync),
		shown: createsAfter(isRepetition), hint: repeatedEventsHint,
	},
	{
		oracle: finding.OracleEndState, cause: finding.CauseUnexpected, faults: inject.SetOf(inject.Restart, inject.Resync),
		shown: createsAfter(isRepetition), hint: repeatedEventsHint,
	},
	{
		oracle: finding.OracleDeletion, shown: createsAfter(isDeletionByUser),
		hint: "created after its owner was deleted: read the owner from the API server before creating, or set an owner " +
			"reference, so that it is garbage-collected",
	},
	{
		oracle: finding.OracleDeletion, shown: isForgotten,
		hint: "the response to the creation was lost, and the object was forgotten: search for it in each reconcile, or " +
			"record its name before creating it",
	},
	{
		oracle: finding.OracleDeletion, faults: inject.StaleFaults, shown: writesAfterStaleRead,
		hint: "the object to delete was not visible: search for it in each reconcile, and read from the API server before " +
			"removing the finalizer",
	},
	{
		oracle: finding.OracleDeletion, faults: inject.CrashFaults, shown: isNotWrittenAfterCrash,
		hint: "the object was forgotten in the crash: search in each reconcile for what is to be deleted, and do not rely " +
			"on memory or on events",
	},
	{
		oracle: finding.OracleDeletion, shown: isUnowned,
		hint: "set an owner reference, or delete the object before removing the finalizer",
	},
	{
		oracle: finding.OracleDeletion, cause: finding.CauseLeftOver, shown: isOwned,
		hint: "it has an owner reference, but is not garbage-collected: the owner must be in the same namespace or " +
			"cluster-scoped",
	},
	{oracle: finding.OracleDeletion, shown: isOutside, hint: "delete it before removing the finalizer"},
	{oracle: finding.OracleDeletion, cause: finding.CauseUnexpected, hint: notNeededHint},

	{
		oracle: finding.OracleIdempotence, cause: finding.CauseMissedWork, faults: inject.ErrorFaults, shown: swallowsError,
		hint: swallowedHint,
	},
	{
		oracle: finding.OracleIdempotence, cause: finding.CauseMissedWork,
		hint: "no event or requeue reported that the work was due: is there a watch for each object that it depends on, " +
			"and does a mapping or predicate drop an event?",
	},
	{
		oracle: finding.OracleIdempotence, shown: modifies,
		hint: "compare before writing: defaults of the API server, the order of maps and lists, and times must not count " +
			"as changes",
	},
	{
		oracle: finding.OracleIdempotence, shown: adds,
		hint: createsHint,
	},
	{
		oracle: finding.OracleIdempotence, cause: finding.CauseNoOpWrite,
		hint: "compare before writing: if nothing differs from the object that was read, do not send the request",
	},

	{
		oracle: finding.OracleQuiescence, cause: finding.CauseHotLoop, shown: asksForMore,
		hint: "do not request another reconcile when all work is done, or only after some seconds",
	},
	{oracle: finding.OracleQuiescence, cause: finding.CauseFight, hint: fightHint},
	{
		oracle: finding.OracleQuiescence, cause: finding.CauseChain,
		hint: "break the cycle: a value that is derived from another one must not lead to a new value of that one",
	},
	{oracle: finding.OracleIdempotence, cause: finding.CauseFight, hint: fightHint},
	{
		oracle: finding.OracleQuiescence, cause: finding.CauseHangs,
		hint: "a reconcile must not wait: return with RequeueAfter, and continue in the next one",
	},
	{
		oracle: finding.OracleQuiescence, shown: failsWith(metav1.StatusReasonConflict),
		hint: "after a conflict, return the error and read again: a request with the same version fails forever",
	},
	{oracle: finding.OracleQuiescence, faults: inject.SetOf(inject.ListOrder), shown: readsSeveral, hint: orderHint},
	{oracle: finding.OracleDuplicates, faults: inject.SetOf(inject.ListOrder), shown: readsSeveral, hint: orderHint},
	{oracle: finding.OracleEndState, faults: inject.SetOf(inject.ListOrder), shown: readsSeveral, hint: orderHint},
	{
		oracle: finding.OracleQuiescence, shown: all(failsWith(metav1.StatusReasonAlreadyExists), isInUse),
		hint: "the name of a new object is that of an existing one, which the reconciler has created: choose a name that " +
			"is not in use",
	},
	{
		oracle: finding.OracleQuiescence, shown: failsWith(metav1.StatusReasonAlreadyExists),
		hint: foreignHint,
	},
	{
		oracle: finding.OracleQuiescence, shown: allFail,
		hint: "each reconcile fails, also after the faults have ended: see the error of the last one",
	},
	{
		oracle: finding.OracleQuiescence, shown: createsOverTime,
		hint: "new work is due whenever time passes, so that the controller is never idle: let time pass, suspend the " +
			"schedule and settle in one step, with SleepThen",
	},
	{
		oracle: finding.OracleQuiescence, shown: isCollectedEachTime,
		hint: "the garbage collector deletes the object after each creation: its owner does not exist, or is in another " +
			"namespace",
	},
	{
		oracle: finding.OracleQuiescence, shown: createsEachTime,
		hint: createsHint,
	},
	{
		oracle: finding.OracleQuiescence, shown: replacesEachTime,
		hint: "each reconcile replaces an object: compare only the fields that you set, because the API server adds defaults",
	},
	{
		oracle: finding.OracleQuiescence, shown: changesEachTime,
		hint: "each reconcile changes an object: compare before writing; defaults of the API server, the order of maps and " +
			"lists, and times must not count as changes",
	},
	{
		oracle: finding.OracleQuiescence, shown: createsInEach,
		hint: createsHint,
	},

	{
		oracle: finding.OracleStatus, cause: finding.CauseReadyBeforeRollout,
		hint: "compare status.observedGeneration of the workload to its generation: until they are equal, its numbers " +
			"describe the previous generation",
	},
	{
		oracle: finding.OracleStatus, cause: finding.CauseReadyUnavailable,
		hint: "set the condition from the current state, and watch the objects that it depends on",
	},
	{
		oracle: finding.OracleStatus, cause: finding.CauseReadyBeforeDependent,
		hint: "set Ready only when all that it is about exists",
	},
	{
		oracle: finding.OracleStatus, cause: finding.CauseTransitionTime,
		hint: "change lastTransitionTime only together with the status of the condition, as meta.SetStatusCondition does",
	},
	{
		oracle: finding.OracleStatus, cause: finding.CauseObservedGeneration,
		hint: "set observedGeneration to the generation of the object that was read, and only when the work is done",
	},

	{
		oracle: finding.OracleErrors, cause: finding.CausePanic, shown: dereferencesNothing,
		hint: "check for fields that may be empty in an object that was just created, or that is being deleted",
	},
	{
		oracle: finding.OracleErrors, cause: finding.CauseTerminalError,
		hint: "return the error unchanged: a terminal error is not retried",
	},
	{oracle: finding.OracleSharedObjects, hint: "copy objects before modifying them: they belong to the cache"},
	{oracle: finding.OracleLeaks, hint: "stop goroutines when the context ends"},
	{
		oracle: finding.OracleAssignment, cause: finding.CauseNotAssigned,
		hint: "check before each reconcile and before each write that the object is assigned to this replica and that its " +
			"Lease has not expired",
	},
	{
		oracle: finding.OracleAssignment, cause: finding.CauseUnassigned,
		hint: "assign the objects of a replica whose Lease has expired to others",
	},

	{
		oracle: finding.OracleEndState, cause: finding.CauseOverwritten,
		hint: "keep the version that the object was read with, and after a conflict apply the change to a new read",
	},
	{oracle: finding.OracleEndState, shown: swallowsError, hint: swallowedHint},
	{
		oracle: finding.OracleEndState, faults: inject.ErrorFaults, shown: failsOutsideOfReconcile,
		hint: "a request of a handler or goroutine fails, and nothing retries it: make it in a reconcile, which can return " +
			"the error",
	},
	{
		oracle: finding.OracleEndState, faults: inject.ErrorFaults, shown: recordsError,
		hint: recordedErrorHint,
	},
	{
		oracle: finding.OracleEndState, faults: inject.ErrorFaults, shown: failedWriteIsNotRepeated,
		hint: notRepeatedHint,
	},
	{
		oracle: finding.OracleEndState, faults: inject.SetOf(inject.TimeoutApplied), shown: failedWriteTookEffect,
		hint: "the write that timed out had taken effect: after an error, read the state again before deciding",
	},
	{
		oracle: finding.OracleEndState, cause: finding.CauseUnexpected, shown: createdTwice(firstIsLost),
		hint: lostCreationHint,
	},
	{
		oracle: finding.OracleEndState, cause: finding.CauseDifferent, shown: repeatsLostWrite,
		hint: "a write was made again although it had taken effect, because its response was lost: make the second one " +
			"harmless",
	},
	{
		oracle: finding.OracleEndState, faults: inject.SetOf(inject.Deleted, inject.Recreated, inject.ChildDeleted),
		shown: isNotRecreated,
		hint:  "an object that another client deletes is not recreated: watch it, and check in each reconcile that it exists",
	},
	{
		oracle: finding.OracleEndState, faults: inject.SetOf(inject.Drift), shown: isNotReverted,
		hint: "a change of another client is not reverted: watch the object, and compare it in each reconcile",
	},
	{
		oracle: finding.OracleEndState, faults: inject.SetOf(inject.KindRemoved), cause: finding.CauseMissing,
		hint: "no event reports that a kind is served again: return the error, or try again later",
	},
	{
		oracle: finding.OracleEndState, faults: inject.SetOf(inject.Taken, inject.TakenUnnoticed), shown: isAcceptedAsItIs,
		hint: foreignHint,
	},
	{
		oracle: finding.OracleEndState, shown: isAcceptedAsItIs,
		hint: "an object that already exists is kept as it is: compare it, and update it",
	},
	{
		oracle: finding.OracleEndState, faults: inject.CrashFaults | inject.SetOf(inject.Restart),
		shown: isNotWrittenAfterCrash,
		hint:  "the work that remains after the crash is not done: decide by the current state, not by what was done before",
	},
	{
		oracle: finding.OracleEndState, faults: inject.StaleFaults, shown: writesAfterStaleRead,
		hint: "a decision was based on a stale cache: use preconditions (UID, resource version), so that the API server " +
			"rejects it",
	},
	{
		oracle: finding.OracleEndState, faults: inject.SetOf(inject.Relist),
		hint: "decide by the current state, not by the event that reported it: events can be missed",
	},
	{
		oracle: finding.OracleEndState, faults: inject.SetOf(inject.Overtaken),
		hint: "concurrent reconciles share state: keep the state of a reconcile in local variables, and lock everything else",
	},

	{
		oracle: finding.OracleEndState, faults: inject.SetOf(inject.Meanwhile), shown: writesAfterStaleRead,
		hint: "a write was based on what was read before users changed it: send the resource version that was read, so " +
			"that the API server rejects it, and do not read the object again in between",
	},
	{
		oracle: finding.OracleEndState, cause: finding.CauseDifferent, faults: inject.CrashFaults,
		shown: all(says(" should not be set"), isWrittenAfterCrash),
		hint: "the next process adds to what the first one has written: build the value from the spec, and not from what " +
			"exists",
	},
	{
		oracle: finding.OracleEndState, cause: finding.CauseDifferent, faults: inject.ErrorFaults,
		shown: all(says(": status."), says(" should not be set"), writesAfterError), hint: recordedErrorHint,
	},
	{
		oracle: finding.OracleEndState, faults: inject.SetOf(inject.Conflict), shown: failedWriteIsNotRepeated,
		hint: notRepeatedHint,
	},
	{
		oracle: finding.OracleEndState, shown: deletesForeign,
		hint: "an object is deleted that belongs to another client: delete only what the owner controls and the " +
			"reconciler has made",
	},
	{
		oracle: finding.OracleEndState, shown: isUnnoticed,
		hint: "no reconcile follows the last change: is there a watch for each object that it depends on, and does a " +
			"mapping or predicate drop the event?",
	},
	{
		oracle: finding.OracleEndState, shown: isMisdirected,
		hint: "the last change leads only to requests for objects that do not exist: a mapping must return the objects " +
			"that depend on the one that has changed",
	},
	{
		oracle: finding.OracleEndState, shown: isAsleep,
		hint: "no reconcile follows when time has passed: return RequeueAfter with the time that remains",
	},
	{oracle: finding.OracleEndState, cause: finding.CauseUnexpected, hint: notNeededHint},

	// States: no fault explains these.
	{
		oracle: finding.OraclePath, shown: says("the last reconcile fails"),
		hint: "after these changes each reconcile fails, see the error of the last one: what earlier specs have left " +
			"must not stop it",
	},
	{
		oracle: finding.OraclePath, cause: finding.CauseUnexpected, shown: says("compared with the deletion"),
		hint: "what an earlier spec required outlives the object: set owner references, or let the cleanup find by label " +
			"what exists, and not by the last spec what should exist",
	},
	{
		oracle: finding.OraclePath, cause: finding.CauseUnexpected,
		hint: "what an earlier spec required remains: in each reconcile, list what exists by label or owner, and delete " +
			"what the present spec does not require",
	},
	{
		oracle: finding.OraclePath, cause: finding.CauseMissing,
		hint: "what the spec requires is not created after another spec: decide by what exists now, and not by what was " +
			"recorded for an earlier spec",
	},
	{
		oracle: finding.OraclePath, cause: finding.CauseDifferent, shown: says(": status."),
		hint: "the status still describes an earlier spec: compute all of it in each reconcile, and remove what no " +
			"longer holds",
	},
	{
		oracle: finding.OraclePath, cause: finding.CauseDifferent, shown: says(" should not be set"),
		hint: "a value of an earlier spec remains: remove what the present spec does not have, instead of adding to what " +
			"exists",
	},
	{
		oracle: finding.OraclePath, cause: finding.CauseDifferent,
		hint: "an existing object keeps a value of an earlier spec: in each reconcile, compare and write all fields that " +
			"the spec determines, also those for which it has no value now",
	},
	{
		oracle: finding.OracleEffect,
		hint: "the reconciler does not read the property, or replaces each of these values by the same default; if it " +
			"reads the property only together with another one, set that one in the scenario",
	},
}

const (
	orderHint          = "sort the items of a list, which has no order"
	repeatedEventsHint = "after a restart or a resync, the reconciler does more than in the run without faults: " +
		"check whether a watch is missing, so that the run without faults is the wrong one"
	lostCreationHint = "created again because the response to an earlier creation was lost: use a name that does not " +
		"change, or record the name before creating"
	fightHint = "let one writer decide about the field: the other one leaves it out of what it writes, with " +
		"server-side apply or a patch of its own fields, or reads it"
	notNeededHint = "it is no longer needed, and remains: in each reconcile, list what exists by label or owner, and " +
		"delete what the present spec does not require"
	recordedErrorHint = "what the reconcile wrote because of the error remains: write it again when the error is over"
	notRepeatedHint   = "the write that failed is not repeated, although its error was returned: decide by the current " +
		"state, not by what was done before"
	createsHint   = "each reconcile creates an object: search for the existing one, or use a name that does not change"
	foreignHint   = "an object that exists may belong to another controller: check its owner, and retry later"
	swallowedHint = "an error is swallowed: return it, so that the request is retried"
)

// Mistake returns the usual reason for a failure and its solution, and the entries of the timeline that show it. Both
// are empty if no hint applies.
func (f *Failure) Mistake() (hint string, proof []int) {
	var faults inject.Set
	for _, d := range f.Schedule {
		faults |= inject.SetOf(d.Fault)
	}
	v := f.Violation
	for _, row := range hintTable {
		if row.oracle != v.Oracle || row.cause != "" && row.cause != v.Cause || row.faults != 0 && row.faults&faults == 0 {
			continue
		}
		if row.shown == nil {
			return row.hint, nil
		}
		if proof := row.shown(f); proof != nil {
			return row.hint, proof
		}
	}
	return "", nil
}
