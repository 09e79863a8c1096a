// SPDX-License-Identifier: Apache-2.0

package converge

// Oracle is a check of each run.
type Oracle string

const (
	// Quiescence fails when reconciles do not come to an end, or when one of them does not return.
	Quiescence Oracle = "O1 quiescence"
	// EndState fails when the state after a settling is not [Scenario.Desired], or not that of the run without faults.
	EndState Oracle = "O2 end state"
	// Idempotence fails when reconciling again, with nothing to do, writes something.
	Idempotence Oracle = "O3 idempotence"
	// Duplicates fails when objects are created or deleted more often than without faults, and no fault explains it.
	Duplicates Oracle = "O4 duplicates"
	// Deletion fails when something of a primary object is left over after it is gone, when it does not go, or when the
	// first effect outside of the cluster comes before there is a finalizer.
	Deletion Oracle = "O5 deletion"
	// Status fails when a status does not tell the truth about the generation it is of.
	Status Oracle = "O6 status"
	// Errors fails when a reconciler panics, or takes a transient error for a terminal one. An error that is forgotten
	// shows in what is not done: see EndState.
	Errors Oracle = "O7 errors"
	// SharedObjects fails when an object of the cache is changed.
	SharedObjects Oracle = "O8 shared objects"
	// Leaks fails when goroutines are left over.
	Leaks Oracle = "O9 leaks"
	// Advice tells about what is dangerous but did no harm. It fails only when the scenario is strict.
	Advice Oracle = "O10 advice"
)

// allOracles are all that there are.
var allOracles = []Oracle{
	Quiescence, EndState, Idempotence, Duplicates, Deletion, Status, Errors, SharedObjects, Leaks, Advice,
}
