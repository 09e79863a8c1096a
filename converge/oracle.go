// SPDX-License-Identifier: Apache-2.0

package converge

import "trueup.dev/converge/internal/finding"

// Oracle is a check of each run.
type Oracle = finding.Oracle

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

// allOracles lists the oracles. finding.OracleScenario cannot be turned off, and is not one of them.
var allOracles = []Oracle{
	OracleQuiescence, OracleEndState, OracleIdempotence, OracleDuplicates, OracleDeletion, OracleStatus, OracleErrors,
	OracleSharedObjects, OracleLeaks, OracleAdvice,
}
