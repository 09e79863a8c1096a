// SPDX-License-Identifier: Apache-2.0

package converge

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Groups of faults that suggest the same mistake.
var (
	staleFaults = setOf(FaultLagRead, FaultLagReconcile, FaultLagLong, FaultRelist, FaultStaleStart)
	crashFaults = setOf(FaultCrashBefore, FaultCrashAfter, FaultHandOver)
)

// hintRow is a hint for the violations of a cause.
type hintRow struct {
	oracle Oracle
	// cause is empty for all causes.
	cause Cause
	// faults are those of which the schedule has one, or 0 for all schedules.
	faults faultSet
	// shown is what the timeline must show, or nil if the violation is enough.
	shown clue
	hint  string
}

// hintTable lists the hints. The first row that matches applies. If none does, there is no hint: a wrong one costs more
// time than it saves.
var hintTable = []hintRow{
	{oracle: oracleScenario, hint: "the scenario fails without any fault"},

	// Duplicates: creations come before deletions, because what is created twice is often deleted afterwards.
	{
		oracle: OracleDuplicates, shown: createdTwice(firstIsNotInCache),
		hint: "created again because an earlier creation was not visible: use a name that does not change, or record the " +
			"name before creating",
	},
	{
		oracle: OracleDuplicates, shown: createdTwice(firstIsLost),
		hint: lostCreationHint,
	},
	{
		oracle: OracleDuplicates, shown: isLostAndDeleted,
		hint: "a creation that failed had taken effect: after an error, read what exists before undoing anything",
	},
	{
		oracle: OracleDuplicates, cause: CauseDeletedAgain, shown: deletesAfterStaleRead,
		hint: "a deletion was based on a stale cache: use preconditions (UID, resource version), and read from the API " +
			"server before an irreversible action",
	},
	{oracle: OracleDuplicates, faults: errorFaults, shown: swallowsError, hint: swallowedHint},

	{
		oracle: OracleDeletion, cause: CauseDeadlock,
		hint: "let only one of them wait for the other: a finalizer is for the cleanup that its own object needs",
	},
	{
		oracle: OracleDeletion, cause: CauseUnprotected,
		hint: "store the finalizer before the first effect outside of the cluster",
	},
	{
		oracle: OracleDeletion, shown: all(isStuck, isReconciledAfterDeletion, swallowsError),
		hint: "a finalizer is not removed because the cleanup swallows an error: return it, so that the request is retried",
	},
	{
		oracle: OracleDeletion, shown: all(isStuck, not(isReconciledAfterDeletion)),
		hint: "no reconcile follows the deletion: does a predicate drop the update that sets deletionTimestamp?",
	},
	{
		oracle: OracleDeletion, shown: all(isStuck, isReconciledAfterDeletion, not(writesAfterDeletion)),
		hint: "a finalizer is not removed: the reconciles after the deletion do not change anything",
	},
	{
		oracle: OracleDeletion, shown: all(isStuck, writesAfterDeletion),
		hint: "a finalizer is not removed although the cleanup has begun: it must continue from each state, also where an " +
			"object no longer exists",
	},
	{oracle: OracleDeletion, faults: errorFaults, shown: swallowsError, hint: swallowedHint},
	{
		oracle: OracleDeletion, cause: CauseUnexpected, faults: setOf(FaultRestart, FaultResync),
		shown: createsAfter(isRepetition), hint: repeatedEventsHint,
	},
	{
		oracle: OracleEndState, cause: CauseUnexpected, faults: setOf(FaultRestart, FaultResync),
		shown: createsAfter(isRepetition), hint: repeatedEventsHint,
	},
	{
		oracle: OracleDeletion, shown: createsAfter(isDeletionByUser),
		hint: "created after its owner was deleted: read the owner from the API server before creating, or set an owner " +
			"reference, so that it is garbage-collected",
	},
	{
		oracle: OracleDeletion, shown: isForgotten,
		hint: "the response to the creation was lost, and the object was forgotten: search for it in each reconcile, or " +
			"record its name before creating it",
	},
	{
		oracle: OracleDeletion, faults: staleFaults, shown: writesAfterStaleRead,
		hint: "the object to delete was not visible: search for it in each reconcile, and read from the API server before " +
			"removing the finalizer",
	},
	{
		oracle: OracleDeletion, faults: crashFaults, shown: isNotWrittenAfterCrash,
		hint: "the object was forgotten in the crash: search in each reconcile for what is to be deleted, and do not rely " +
			"on memory or on events",
	},
	{
		oracle: OracleDeletion, shown: isUnowned,
		hint: "set an owner reference, or delete the object before removing the finalizer",
	},
	{
		oracle: OracleDeletion, cause: CauseLeftOver, shown: isOwned,
		hint: "it has an owner reference, but is not garbage-collected: the owner must be in the same namespace or " +
			"cluster-scoped",
	},
	{oracle: OracleDeletion, shown: isOutside, hint: "delete it before removing the finalizer"},

	{oracle: OracleIdempotence, cause: CauseMissedWork, faults: errorFaults, shown: swallowsError, hint: swallowedHint},
	{
		oracle: OracleIdempotence, cause: CauseMissedWork,
		hint: "no event or requeue reported that the work was due: is there a watch for each object that it depends on, " +
			"and does a mapping or predicate drop an event?",
	},
	{
		oracle: OracleIdempotence, shown: modifies,
		hint: "compare before writing: defaults of the API server, the order of maps and lists, and times must not count " +
			"as changes",
	},
	{
		oracle: OracleIdempotence, shown: adds,
		hint: "each reconcile creates an object: search for the existing one, or use a name that does not change",
	},

	{
		oracle: OracleQuiescence, cause: CauseHotLoop, shown: asksForMore,
		hint: "do not request another reconcile when all work is done, or only after some seconds",
	},
	{oracle: OracleQuiescence, cause: CauseFight, hint: fightHint},
	{
		oracle: OracleQuiescence, cause: CauseChain,
		hint: "break the cycle: a value that is derived from another one must not lead to a new value of that one",
	},
	{oracle: OracleIdempotence, cause: CauseFight, hint: fightHint},
	{
		oracle: OracleQuiescence, cause: CauseHangs,
		hint: "a reconcile must not wait: return with RequeueAfter, and continue in the next one",
	},
	{
		oracle: OracleQuiescence, shown: failsWith(metav1.StatusReasonConflict),
		hint: "after a conflict, return the error and read again: a request with the same version fails forever",
	},
	{oracle: OracleQuiescence, faults: setOf(FaultListOrder), shown: readsSeveral, hint: orderHint},
	{oracle: OracleDuplicates, faults: setOf(FaultListOrder), shown: readsSeveral, hint: orderHint},
	{oracle: OracleEndState, faults: setOf(FaultListOrder), shown: readsSeveral, hint: orderHint},
	{
		oracle: OracleQuiescence, shown: all(failsWith(metav1.StatusReasonAlreadyExists), isInUse),
		hint: "the name of a new object is that of an existing one, which the reconciler has created: choose a name that " +
			"is not in use",
	},
	{
		oracle: OracleQuiescence, shown: failsWith(metav1.StatusReasonAlreadyExists),
		hint: "an object that exists may belong to another controller: check its owner, and retry later",
	},
	{
		oracle: OracleQuiescence, shown: allFail,
		hint: "each reconcile fails, also after the faults have ended: see the error of the last one",
	},
	{
		oracle: OracleQuiescence, shown: createsOverTime,
		hint: "new work is due whenever time passes, so that the controller is never idle: let time pass, suspend the " +
			"schedule and settle in one step, with SleepThen",
	},
	{
		oracle: OracleQuiescence, shown: isCollectedEachTime,
		hint: "the garbage collector deletes the object after each creation: its owner does not exist, or is in another " +
			"namespace",
	},
	{
		oracle: OracleQuiescence, shown: createsEachTime,
		hint: "each reconcile creates an object: search for the existing one, or use a name that does not change",
	},
	{
		oracle: OracleQuiescence, shown: replacesEachTime,
		hint: "each reconcile replaces an object: compare only the fields that you set, because the API server adds defaults",
	},
	{
		oracle: OracleQuiescence, shown: changesEachTime,
		hint: "each reconcile changes an object: compare before writing; defaults of the API server, the order of maps and " +
			"lists, and times must not count as changes",
	},

	{
		oracle: OracleStatus, cause: CauseReadyBeforeRollout,
		hint: "compare status.observedGeneration of the workload to its generation: until they are equal, its numbers " +
			"describe the previous generation",
	},
	{
		oracle: OracleStatus, cause: CauseReadyUnavailable,
		hint: "set the condition from the current state, and watch the objects that it depends on",
	},
	{
		oracle: OracleStatus, cause: CauseReadyBeforeDependent,
		hint: "set Ready only when all that it is about exists",
	},
	{
		oracle: OracleStatus, cause: CauseTransitionTime,
		hint: "change lastTransitionTime only together with the status of the condition, as meta.SetStatusCondition does",
	},
	{
		oracle: OracleStatus, cause: CauseObservedGeneration,
		hint: "set observedGeneration to the generation of the object that was read, and only when the work is done",
	},

	{
		oracle: OracleErrors, cause: CausePanic, shown: dereferencesNothing,
		hint: "check for fields that may be empty in an object that was just created, or that is being deleted",
	},
	{
		oracle: OracleErrors, cause: CauseTerminalError,
		hint: "return the error unchanged: a terminal error is not retried",
	},
	{oracle: OracleSharedObjects, hint: "copy objects before modifying them: they belong to the cache"},
	{oracle: OracleLeaks, hint: "stop goroutines when the context ends"},

	{
		oracle: OracleEndState, cause: CauseOverwritten,
		hint: "keep the version that the object was read with, and after a conflict apply the change to a new read",
	},
	{oracle: OracleEndState, shown: swallowsError, hint: swallowedHint},
	{
		oracle: OracleEndState, faults: errorFaults, shown: failsOutsideOfReconcile,
		hint: "a request of a handler or goroutine fails, and nothing retries it: make it in a reconcile, which can return " +
			"the error",
	},
	{
		oracle: OracleEndState, faults: errorFaults, shown: recordsError,
		hint: "what the reconcile wrote because of the error remains: write it again when the error is over",
	},
	{
		oracle: OracleEndState, faults: errorFaults, shown: failedWriteIsNotRepeated,
		hint: "the write that failed is not repeated, although its error was returned: decide by the current state, not by " +
			"what was done before",
	},
	{
		oracle: OracleEndState, faults: setOf(FaultTimeoutApplied), shown: failedWriteTookEffect,
		hint: "the write that timed out had taken effect: after an error, read the state again before deciding",
	},
	{
		oracle: OracleEndState, cause: CauseUnexpected, shown: createdTwice(firstIsLost),
		hint: lostCreationHint,
	},
	{
		oracle: OracleEndState, cause: CauseDifferent, shown: repeatsLostWrite,
		hint: "a write was made again although it had taken effect, because its response was lost: make the second one " +
			"harmless",
	},
	{
		oracle: OracleEndState, faults: setOf(FaultDeleted, FaultRecreated, FaultChildDeleted), shown: isNotRecreated,
		hint: "an object that another client deletes is not recreated: watch it, and check in each reconcile that it exists",
	},
	{
		oracle: OracleEndState, faults: setOf(FaultDrift), shown: isNotReverted,
		hint: "a change of another client is not reverted: watch the object, and compare it in each reconcile",
	},
	{
		oracle: OracleEndState, faults: setOf(FaultTaken, FaultTakenUnnoticed), shown: isAcceptedAsItIs,
		hint: "an object that exists may belong to another controller: check its owner, and retry later",
	},
	{
		oracle: OracleEndState, shown: isAcceptedAsItIs,
		hint: "an object that already exists is kept as it is: compare it, and update it",
	},
	{
		oracle: OracleEndState, faults: crashFaults | setOf(FaultRestart), shown: isNotWrittenAfterCrash,
		hint: "the work that remains after the crash is not done: decide by the current state, not by what was done before",
	},
	{
		oracle: OracleEndState, faults: staleFaults, shown: writesAfterStaleRead,
		hint: "a decision was based on a stale cache: use preconditions (UID, resource version), so that the API server " +
			"rejects it",
	},
	{
		oracle: OracleEndState, faults: setOf(FaultRelist),
		hint: "decide by the current state, not by the event that reported it: events can be missed",
	},
	{
		oracle: OracleEndState, faults: setOf(FaultOvertaken),
		hint: "concurrent reconciles share state: keep the state of a reconcile in local variables, and lock everything else",
	},
}

const (
	orderHint          = "sort the items of a list, which has no order"
	repeatedEventsHint = "after a restart or a resync, the reconciler does more than in the run without faults: " +
		"check whether a watch is missing, so that the run without faults is the wrong one"
	lostCreationHint = "created again because the response to an earlier creation was lost: use a name that does not " +
		"change, or record the name before creating"
	fightHint = "let one writer decide about the field: the other one leaves it out of what it writes, with server-side " +
		"apply or a patch of its own fields, or reads it"
	swallowedHint = "an error is swallowed: return it, so that the request is retried"
)

// explainMistake finds the usual reason for a failure and its solution, and the lines of the timeline that show it.
func (f *Failure) explainMistake() {
	var faults faultSet
	for _, d := range f.schedule {
		faults |= setOf(d.fault)
	}
	v := f.Violation
	for _, row := range hintTable {
		if row.oracle != v.Oracle || row.cause != "" && row.cause != v.Cause || row.faults != 0 && row.faults&faults == 0 {
			continue
		}
		if row.shown == nil {
			f.Hint, f.proof = row.hint, nil
			return
		}
		if proof := row.shown(f); proof != nil {
			f.Hint, f.proof = row.hint, proof
			return
		}
	}
}
