// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
)

// Case is what the oracles know of a scenario.
type Case struct {
	// Off are the oracles that are off, with the reasons.
	Off map[finding.Oracle]string
	// Excepts reports whether an exception turns an oracle off for what a finding is about, in a step.
	Excepts func(oracle finding.Oracle, about string, step int) bool
	// IsProgram and IsActor report whether a client belongs to a process, or to an actor.
	IsProgram, IsActor func(client string) bool
	Reader             state.Reader
	// Strict makes advice a violation.
	Strict bool
	// MaxReconciles limits the reconciles of a Settle without faults, and Patience its time.
	MaxReconciles int
	Patience      time.Duration
	// Assigned report whether a primary object is assigned to a program, by the client of the program.
	Assigned map[string]func(client.Object) bool
	// LastStep is the index of the last step.
	LastStep int
	// Records is set for a run without faults whose outcome others are compared with.
	Records bool
	// Versions has each version of the controller once, and Sequence those that the first process runs, the second one
	// and so on. Without an upgrade both are one version.
	Versions, Sequence []*Version
}

// upgrades reports whether the version of the controller changes.
func (c *Case) upgrades() bool { return len(c.Sequence) > 1 }

// Version is a version of a controller, and what it is judged by.
type Version struct {
	// Name is the name of a version of an upgrade.
	Name    string
	Primary schema.GroupVersionKind
	// Desired returns an error if a state is wrong. Nil compares with the reference.
	Desired func(*world.World) error
	// Reference has the runs without faults, or is nil before them.
	Reference *Reference
	// Waits is set if primary objects become ready only when their workloads are available.
	Waits bool
}

// expected returns how often a thing is created or deleted without faults, or how many of it exist at once. After an
// upgrade it is the larger number of both versions. What one version does not create it may delete, and the other one
// then creates it when it runs again.
func (c *Case) expected(
	cause finding.Cause, counts func(*Ledger) map[state.Thing]int, t state.Thing, skipped []int,
) int {
	if len(c.Sequence) == 1 {
		return c.Sequence[0].Reference.count(counts, t, skipped)
	}
	most, sum, created, shared := 0, 0, 0, true
	for _, version := range c.Sequence {
		n := version.Reference.count(counts, t, skipped)
		own := version.Reference.count(func(l *Ledger) map[state.Thing]int { return l.Created }, t, skipped)
		most, sum, created, shared = max(most, n), sum+n, created+own, shared && own > 0
	}
	switch {
	case shared || created == 0 || cause == finding.CauseLiveAtOnce:
		return most
	case cause == finding.CauseDeletedAgain:
		return sum + created
	}
	return sum
}
