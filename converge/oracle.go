// SPDX-License-Identifier: Apache-2.0

package converge

// Oracle is a check of each run.
type Oracle string

const (
	// OracleQuiescence fails when reconciles do not stop, or when one of them does not return.
	OracleQuiescence Oracle = "O1 quiescence"
	// OracleEndState fails when the state at a [Settle] is not [Scenario.Desired], or not that of the run without faults.
	OracleEndState Oracle = "O2 end state"
	// OracleIdempotence fails when another reconcile writes, although nothing has changed, or when each reconcile makes
	// an update or a patch that changes nothing. An apply that changes nothing is not a failure.
	OracleIdempotence Oracle = "O3 idempotence"
	// OracleDuplicates fails when objects are created or deleted more often than without faults, and no fault explains it.
	OracleDuplicates Oracle = "O4 duplicates"
	// OracleDeletion fails when a deleted primary object still exists, when one of its dependents does, or when the first
	// effect outside of the cluster precedes the finalizer.
	OracleDeletion Oracle = "O5 deletion"
	// OracleStatus fails when a status does not describe the generation that it names.
	OracleStatus Oracle = "O6 status"
	// OracleErrors fails when a reconciler panics, or returns a terminal error for a temporary one. A swallowed error has
	// the effect that work is not done, which OracleEndState reports.
	OracleErrors Oracle = "O7 errors"
	// OracleSharedObjects fails when an object of the cache is modified.
	OracleSharedObjects Oracle = "O8 shared objects"
	// OracleLeaks fails when goroutines outlive their process.
	OracleLeaks Oracle = "O9 leaks"
	// OracleAdvice reports dangerous requests that did no harm. It fails only if [Scenario.Strict] is set.
	OracleAdvice Oracle = "O10 advice"
)

// allOracles lists the oracles. oracleScenario cannot be turned off, and is not one of them.
var allOracles = []Oracle{
	OracleQuiescence, OracleEndState, OracleIdempotence, OracleDuplicates, OracleDeletion, OracleStatus, OracleErrors,
	OracleSharedObjects, OracleLeaks, OracleAdvice,
}

// oracleMeanings describe on a page what an oracle requires.
var oracleMeanings = map[Oracle]string{
	oracleScenario:      "The scenario must work without any fault.",
	OracleQuiescence:    "Reconciles must stop once no more faults are injected.",
	OracleEndState:      "When the controller is idle, the state must be the desired one, or that without faults.",
	OracleIdempotence:   "Another reconcile must not write anything, if nothing has changed.",
	OracleDuplicates:    "Nothing may be created or deleted more often than without faults, unless a fault explains it.",
	OracleDeletion:      "A deleted object must disappear with all its dependents, also those outside of the cluster.",
	OracleStatus:        "A status must describe the generation that it names.",
	OracleErrors:        "A reconciler must not panic, and must retry after a temporary error.",
	OracleSharedObjects: "Objects of the cache must not be modified.",
	OracleLeaks:         "Goroutines must end with the process.",
	OraclePath:          "The state must be that of a new object with the same spec, whatever the spec was before.",
	OracleAdvice:        "This request did no harm here, but it is dangerous.",
}
