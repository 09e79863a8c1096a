// SPDX-License-Identifier: Apache-2.0

// Package finding names what can be wrong with a run: the oracles, and the causes of their findings.
package finding

import (
	"strings"

	"trueup.dev/converge/internal/inject"
)

// Oracle is a check of each run. Package converge describes the oracles to users.
type Oracle string

// Cause classifies the findings of an oracle. Package converge describes the causes to users.
type Cause string

// The oracles. OracleScenario is none: the scenario itself fails.
const (
	OracleQuiescence    Oracle = "O1 quiescence"
	OracleEndState      Oracle = "O2 end state"
	OracleIdempotence   Oracle = "O3 idempotence"
	OracleDuplicates    Oracle = "O4 duplicates"
	OracleDeletion      Oracle = "O5 deletion"
	OracleStatus        Oracle = "O6 status"
	OracleErrors        Oracle = "O7 errors"
	OracleSharedObjects Oracle = "O8 shared objects"
	OracleLeaks         Oracle = "O9 leaks"
	OracleAdvice        Oracle = "O10 advice"
	OracleAssignment    Oracle = "O11 assignment"
	OraclePath          Oracle = "S1 path independence"
	OracleEffect        Oracle = "S2 effect"
	OracleScenario      Oracle = "scenario"
)

// The causes.
const (
	CauseNotQuiet             Cause = "not-quiet"
	CauseHangs                Cause = "hangs"
	CauseHotLoop              Cause = "hot-loop"
	CauseFight                Cause = "fight"
	CauseChain                Cause = "chain"
	CauseNotDesired           Cause = "not-desired"
	CauseMissing              Cause = "missing"
	CauseUnexpected           Cause = "unexpected"
	CauseDifferent            Cause = "different"
	CauseOverwritten          Cause = "overwritten"
	CauseRedundantWrite       Cause = "redundant-write"
	CauseMissedWork           Cause = "missed-work"
	CauseNoOpWrite            Cause = "no-op-write"
	CauseDuplicate            Cause = "duplicate"
	CauseDeletedAgain         Cause = "deleted-again"
	CauseCreatedAgain         Cause = "created-again"
	CauseLiveAtOnce           Cause = "live-at-once"
	CauseNotDeleted           Cause = "not-deleted"
	CauseDeadlock             Cause = "deadlock"
	CauseLeftOver             Cause = "left-over"
	CauseUnprotected          Cause = "unprotected"
	CauseObservedGeneration   Cause = "observed-generation"
	CauseTransitionTime       Cause = "transition-time"
	CauseReadyBeforeRollout   Cause = "ready-before-rollout"
	CauseReadyBeforeDependent Cause = "ready-before-dependent"
	CauseReadyUnavailable     Cause = "ready-unavailable"
	CausePanic                Cause = "panic"
	CauseConversion           Cause = "conversion"
	CauseForbidden            Cause = "forbidden"
	CauseTerminalError        Cause = "terminal-error"
	CauseCacheModified        Cause = "cache-modified"
	CauseGoroutines           Cause = "goroutines"
	CauseUnconditionalDelete  Cause = "unconditional-delete"
	CauseUnconditionalUpdate  Cause = "unconditional-update"
	CauseNotAssigned          Cause = "not-assigned"
	CauseUnassigned           Cause = "unassigned"
	CauseScenario             Cause = "scenario"
	CauseIgnored              Cause = "ignored"
)

// Violation is a finding of an oracle, with the fields of the type of package converge.
type Violation struct {
	Oracle  Oracle
	Cause   Cause
	About   string
	Message string
	Details []string
}

func (v Violation) String() string { return string(v.Oracle) + ": " + v.Message }

// IsLike reports whether two violations are by the same oracle about the same object.
func (v Violation) IsLike(other Violation) bool {
	return v.Oracle == other.Oracle && v.About == other.About
}

// ScenarioFailure returns the violation of a scenario that fails by itself.
func ScenarioFailure(message string) Violation {
	return Violation{Oracle: OracleScenario, Cause: CauseScenario, Message: message}
}

// Compares reports whether a violation is a difference from the run without faults.
func (v Violation) Compares() bool {
	switch v.Cause {
	case CauseMissing, CauseUnexpected, CauseDifferent, CauseDuplicate, CauseDeletedAgain, CauseCreatedAgain,
		CauseLiveAtOnce:
		return true
	}
	return false
}

// Object returns the name of the object that a violation is about, as other messages have it. It is empty if the
// violation is not about one object.
func (v Violation) Object() string {
	about := v.About
	for _, event := range inject.EventNames {
		about = strings.TrimPrefix(about, event+" ")
	}
	about, _, _ = strings.Cut(about, " (")   // one of several objects with generated names
	about, _, _ = strings.Cut(about, " of ") // the group of a kind
	return about
}

// Meanings describe on a page what an oracle requires.
var Meanings = map[Oracle]string{
	OracleScenario:      "The scenario must work without any fault.",
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
	OracleAssignment:    "Each object must be assigned to one program, and only that one may write it.",
}
