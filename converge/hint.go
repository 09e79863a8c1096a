// SPDX-License-Identifier: Apache-2.0

package converge

// Groups of faults that suggest the same mistake.
var (
	staleFaults = setOf(FaultLagRead, FaultLagReconcile, FaultLagLong, FaultRelist, FaultStaleStart)
	crashFaults = setOf(FaultCrashBefore, FaultCrashAfter, FaultHandOver)
)

// hintRow is a hint for the violations of a cause, if the schedule has one of the faults.
type hintRow struct {
	oracle Oracle
	// cause is empty for all causes.
	cause Cause
	// faults is 0 for all schedules.
	faults faultSet
	hint   string
}

// hintTable lists the hints in the order of preference. For a wrong end state, the table of faults has further hints.
var hintTable = []hintRow{
	{oracleScenario, "", 0, "the scenario fails without any fault"},

	{OracleDuplicates, CauseDeletedAgain, staleFaults, "a deletion was based on a stale cache: use preconditions (UID, " +
		"resource version), and read from the API server before an irreversible action"},
	{
		OracleDuplicates,
		"",
		staleFaults | crashFaults&^setOf(FaultCrashBefore) | setOf(FaultTimeoutApplied),
		"created again " +
			"because an earlier creation was not visible: use a name that does not change, or record the name before creating",
	},

	{OracleDeletion, CauseUnprotected, 0, "store the finalizer before the first effect outside of the cluster"},
	{
		OracleDeletion,
		CauseNotDeleted,
		0,
		"a finalizer is not removed: does the cleanup swallow an error, or treat a missing " +
			"object as an error?",
	},
	{OracleDeletion, CauseUnexpected, setOf(FaultRestart, FaultResync), repeatedEventsHint},
	{OracleEndState, CauseUnexpected, setOf(FaultRestart, FaultResync), repeatedEventsHint},
	{
		OracleDeletion,
		"",
		staleFaults | crashFaults,
		"the object to delete was not visible, or was forgotten: search for it " +
			"in each reconcile, and read from the API server before removing the finalizer",
	},
	{OracleDeletion, "", 0, "set an owner reference, or delete the object before removing the finalizer"},

	{
		OracleIdempotence,
		CauseMissedWork,
		0,
		"no event reported that the work was due: is there a watch for each object that " +
			"it depends on, and does a mapping or predicate drop an event?",
	},
	{
		OracleIdempotence,
		"",
		0,
		"compare before writing: defaults of the API server, the order of maps and lists, and times " +
			"must not count as changes",
	},

	{
		OracleQuiescence,
		CauseHotLoop,
		0,
		"do not request another reconcile when all work is done, or only after some seconds",
	},
	{
		OracleQuiescence,
		"",
		setOf(FaultConflict),
		"after a conflict, return the error and read again: a request with the same " +
			"version fails forever",
	},
	{
		OracleQuiescence,
		"",
		setOf(FaultExists),
		"an object that exists may belong to another controller: check its owner, and " +
			"retry later",
	},
	{OracleQuiescence, "", 0, "each reconcile writes or fails: see the last lines"},

	{
		OracleStatus,
		CauseReadyBeforeRollout,
		0,
		"compare status.observedGeneration of the workload to its generation: until " +
			"they are equal, its numbers describe the previous generation",
	},
	{
		OracleStatus,
		CauseReadyUnavailable,
		0,
		"set the condition from the current state, and watch the objects that it depends " +
			"on",
	},
	{
		OracleStatus,
		"",
		0,
		"set observedGeneration to the generation of the object that was read, and only when the work is " +
			"done",
	},

	{
		OracleErrors,
		CausePanic,
		0,
		"check for fields that may be empty in an object that was just created, or that is being " +
			"deleted",
	},
	{OracleErrors, "", 0, "return the error unchanged: a terminal error is not retried"},
	{OracleSharedObjects, "", 0, "copy objects before modifying them: they belong to the cache"},
	{OracleLeaks, "", 0, "stop goroutines when the context ends"},
	{
		OracleEndState,
		CauseOverwritten,
		0,
		"keep the version that the object was read with, and after a conflict apply the " +
			"change to a new read",
	},
}

const repeatedEventsHint = "after a restart or a resync, the reconciler does more than in the run without faults: " +
	"check whether a watch is missing, so that the run without faults is the wrong one"

// hint returns the usual reason for a failure and its solution, or "" for none.
func hint(f *Failure) string {
	var faults faultSet
	for _, d := range f.schedule {
		faults |= setOf(d.fault)
	}
	v := f.Violation
	for _, row := range hintTable {
		if row.oracle == v.Oracle && (row.cause == "" || row.cause == v.Cause) &&
			(row.faults == 0 || row.faults&faults != 0) {
			return row.hint
		}
	}
	if v.Oracle != OracleEndState {
		return ""
	}
	likely := noMistake
	for _, fault := range faults.faults() {
		if m := fault.row().mistake; m != noMistake && (likely == noMistake || m < likely) {
			likely = m
		}
	}
	return mistakeHints[likely]
}
