// SPDX-License-Identifier: Apache-2.0

package converge

import "trueup.dev/converge/internal/finding"

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
	CauseNotQuiet Cause = "not-quiet"
	// CauseHangs is for a reconcile that does not return.
	CauseHangs Cause = "hangs"
	// CauseHotLoop is for an object that is reconciled again and again without a change.
	CauseHotLoop Cause = "hot-loop"
	// CauseFight is for two writers that change the same field in turn. It is also one of [OracleIdempotence]. A writer is
	// a program, an actor, a controller, or the reconciles of one request.
	CauseFight Cause = "fight"
	// CauseChain is for several writers, each of which leads to the next change of another one, without end.
	CauseChain Cause = "chain"
)

// Causes of [OracleEndState]. CauseUnexpected is also one of [OracleDeletion].
const (
	// CauseNotDesired is for a state that Scenario.Desired rejects.
	CauseNotDesired Cause = "not-desired"
	// CauseMissing is for an object that should exist.
	CauseMissing Cause = "missing"
	// CauseUnexpected is for an object that should not exist.
	CauseUnexpected Cause = "unexpected"
	// CauseDifferent is for an object whose content differs from that of the run without faults.
	CauseDifferent Cause = "different"
	// CauseOverwritten is for a write that reverts a change of another client.
	CauseOverwritten Cause = "overwritten"
)

// Causes of [OracleIdempotence].
const (
	// CauseRedundantWrite is for a reconcile that writes each time.
	CauseRedundantWrite Cause = "redundant-write"
	// CauseMissedWork is for a reconcile that writes once: it was due earlier.
	CauseMissedWork Cause = "missed-work"
	// CauseNoOpWrite is for an update or a patch in each reconcile that changes nothing.
	CauseNoOpWrite Cause = "no-op-write"
)

// Causes of [OracleDuplicates].
const (
	// CauseDuplicate is for several objects whose names the API server has generated, where there should be fewer.
	CauseDuplicate Cause = "duplicate"
	// CauseDeletedAgain is for an object that is deleted too often.
	CauseDeletedAgain Cause = "deleted-again"
	// CauseCreatedAgain is for an object that is created too often.
	CauseCreatedAgain Cause = "created-again"
	// CauseLiveAtOnce is for too many objects at the same time.
	CauseLiveAtOnce Cause = "live-at-once"
)

// Causes of [OracleDeletion].
const (
	// CauseNotDeleted is for a primary object whose finalizers are not removed.
	CauseNotDeleted Cause = "not-deleted"
	// CauseDeadlock is for objects whose finalizers wait for each other's deletion.
	CauseDeadlock Cause = "deadlock"
	// CauseLeftOver is for a dependent that outlives all primary objects.
	CauseLeftOver Cause = "left-over"
	// CauseUnprotected is for an effect outside of the cluster that precedes the finalizer.
	CauseUnprotected Cause = "unprotected"
)

// Causes of [OracleStatus].
const (
	// CauseObservedGeneration is for an observedGeneration of another generation.
	CauseObservedGeneration Cause = "observed-generation"
	// CauseTransitionTime is for a lastTransitionTime that changes although the status of the condition does not.
	CauseTransitionTime Cause = "transition-time"
	// CauseReadyBeforeRollout is for an object that becomes Ready before a workload is rolled out.
	CauseReadyBeforeRollout Cause = "ready-before-rollout"
	// CauseReadyBeforeDependent is for an object that becomes Ready before a dependent exists.
	CauseReadyBeforeDependent Cause = "ready-before-dependent"
	// CauseReadyUnavailable is for an object that is Ready although a workload is not available.
	CauseReadyUnavailable Cause = "ready-unavailable"
)

// Causes of [OracleErrors], [OracleSharedObjects] and [OracleLeaks].
const (
	// CausePanic is for a reconcile that panics.
	CausePanic Cause = "panic"
	// CauseConversion is for an object that a conversion webhook cannot convert.
	CauseConversion Cause = "conversion"
	// CauseForbidden is for a request that the roles do not allow.
	CauseForbidden Cause = "forbidden"
	// CauseTerminalError is for a terminal error that wraps a temporary one.
	CauseTerminalError Cause = "terminal-error"
	// CauseCacheModified is for an object of the cache that was modified.
	CauseCacheModified Cause = "cache-modified"
	// CauseGoroutines is for goroutines that outlive their process.
	CauseGoroutines Cause = "goroutines"
)

// Causes of [OracleAdvice].
const (
	// CauseUnconditionalDelete is for a delete without a precondition that deletes another object than the cache has.
	CauseUnconditionalDelete Cause = "unconditional-delete"
	// CauseUnconditionalUpdate is for an update without a resource version that overwrites a change.
	CauseUnconditionalUpdate Cause = "unconditional-update"
)

// CauseScenario is for a scenario that fails by itself: a step, an actor, or the setup of the reconciler.
const CauseScenario Cause = "scenario"
