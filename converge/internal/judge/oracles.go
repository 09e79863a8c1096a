// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
)

// Verdict collects the violations of a run.
type Verdict struct {
	Scenario *Case
	Trace    *world.Trace
	// Running is the version that the processes run.
	Running *Version
	// Tell is called with each violation.
	Tell func(finding.Violation)

	Violations []finding.Violation
	// Advices are dangerous requests that did no harm.
	Advices []string
	// stopped is set if the run does not converge, and the oracle that reports it is off.
	stopped bool
}

// Violate records a violation. The first one ends the run: later ones are its consequences.
func (v *Verdict) Violate(violation finding.Violation) {
	if _, off := v.Scenario.Off[violation.Oracle]; off || v.excepts(violation.Oracle, violation.About) {
		v.stopped = v.stopped || violation.Oracle == finding.OracleQuiescence
		return
	}
	v.Violations = append(v.Violations, violation)
	v.Tell(violation)
}

// excepts reports whether an exception turns an oracle off for an object in the present step.
func (v *Verdict) excepts(oracle finding.Oracle, about string) bool {
	return v.Scenario.Excepts(oracle, about, v.Trace.Step)
}

// Failed reports whether the run has ended with a violation, or is not to go on.
func (v *Verdict) Failed() bool { return len(v.Violations) > 0 || v.stopped }

// Replace makes a violation the only one.
func (v *Verdict) Replace(violation finding.Violation) {
	v.Violations = nil
	v.Violate(violation)
}

// Evidence is what each oracle sees: the scenario with its reference, the world, and the trace.
type Evidence struct {
	*Verdict
	// Ledger is what the process has created and deleted in the run so far.
	Ledger

	Scenario *Case
	World    *world.World
	Trace    *world.Trace
	Queues   Queues
}

// history returns what has happened to the objects of the run so far.
func (e *Evidence) history() History {
	return History{
		Server: e.World.Server, Names: e.World.Generated, Reader: e.Scenario.Reader, Authors: e.Trace.Authors,
		IsProgram: e.Scenario.IsProgram, Released: e.releases,
	}
}

// releases reports whether a program or an actor has removed a finalizer, in this run or without faults.
func (e *Evidence) releases(f FinalizerOf) bool {
	return e.Released[f] || slices.ContainsFunc(e.Scenario.Versions, func(v *Version) bool {
		return v.Reference != nil && v.Reference.Ledger.Released[f]
	})
}

// Oracles has one type for each oracle. A few oracles report violations of others: the comparison of end states also
// finds duplicates and objects that should have been deleted.
type Oracles struct {
	world *world.World
	trace *world.Trace

	Quiescence    quiescenceOracle
	EndState      endStateOracle
	idempotence   idempotenceOracle
	Duplicates    duplicatesOracle
	deletion      deletionOracle
	Status        statusOracle
	Errors        errorsOracle
	sharedObjects sharedObjectsOracle
	Leaks         leaksOracle
	Advice        adviceOracle
	Assignment    assignmentOracle
}

// NewOracles returns the oracles of a run with a number of faults. They check each state twice if twice is set.
func NewOracles(e Evidence, p *Pace, faults int, twice bool) Oracles {
	e.Ledger = NewLedger()
	return Oracles{
		world: e.World, trace: e.Trace,
		Quiescence:    quiescenceOracle{Evidence: e, pace: p, faults: faults, rates: map[world.RequestOf]rate{}},
		EndState:      newEndStateOracle(e),
		idempotence:   idempotenceOracle{Evidence: e, twice: twice},
		Duplicates:    duplicatesOracle{Evidence: e, creators: map[types.UID]*world.Reconcile{}},
		deletion:      deletionOracle{Evidence: e, finalized: map[string]bool{}},
		Status:        statusOracle{Evidence: e, faults: faults},
		Errors:        errorsOracle{Evidence: e},
		sharedObjects: sharedObjectsOracle{Evidence: e},
		Leaks:         leaksOracle{Evidence: e},
		Advice:        adviceOracle{Evidence: e},
		Assignment:    assignmentOracle{Evidence: e},
	}
}

// Changed is called for each watch event of the API server.
func (o *Oracles) Changed(e memapi.Event) {
	o.Duplicates.changed(e)
	o.EndState.changed(e)
	o.Assignment.changed(e)
	if e.Kind != o.EndState.Running.Primary || !o.world.IsProgram(e.Client) {
		return
	}
	o.deletion.changed(e)
	o.Status.changed(e)
}

// CloudChanged is called when a call of the process has changed the external system. The primary object is the object
// that is reconciled, or nil. counted is set unless a fault explains repeated changes.
func (o *Oracles) CloudChanged(verb, key string, existed, counted bool, primary client.Object) {
	if primary == nil {
		return
	}
	if counted {
		o.Duplicates.cloudChanged(verb, key, existed)
	}
	if verb != "delete" {
		o.deletion.effect(primary, "cloud "+verb+" "+key)
	}
}

// Settled checks the state at a Settle, until an oracle fails: all share one verdict. again reconciles all objects once
// more.
func (o *Oracles) Settled(s *state.Snapshot, skipped []int, again func()) {
	o.Assignment.Check("")
	if !o.EndState.Failed() {
		o.EndState.check(s, skipped)
	}
	if !o.EndState.Failed() {
		o.deletion.settled(s, again)
	}
	if !o.EndState.Failed() {
		o.Status.settled()
	}
	if !o.EndState.Failed() {
		o.idempotence.check(again)
	}
	if !o.EndState.Failed() {
		o.sharedObjects.check()
	}
}

// Ended checks the whole run. reference is set for the first run without faults.
func (o *Oracles) Ended(skipped []int, merged, reference bool) {
	if !merged {
		o.Duplicates.check(skipped)
	}
	if reference {
		o.Status.checkReady()
	}
	o.deletion.checkProtected()
}

// primaryName names a primary object in messages.
func (e *Evidence) primaryName(obj client.Object) string {
	return e.Running.Primary.Kind + " " + phrase.Name(client.ObjectKeyFromObject(obj))
}
