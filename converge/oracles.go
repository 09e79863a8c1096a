// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi"
)

// verdict collects the violations of a run.
type verdict struct {
	plan  *plan
	trace *trace
	// running is the plan whose programs the processes run. In an upgrade it is that of a version.
	running *plan

	violations []Violation
	// advices are dangerous requests that did no harm.
	advices []string
	// stopped is set if the run does not converge, and the oracle that reports it is off.
	stopped bool
}

// violate records a violation. The first one ends the run: later ones are its consequences.
func (v *verdict) violate(violation Violation) {
	if _, off := v.plan.Off[violation.Oracle]; off || v.excepts(violation.Oracle, violation.About) {
		v.stopped = v.stopped || violation.Oracle == OracleQuiescence
		return
	}
	v.violations = append(v.violations, violation)
	v.trace.violation(violation)
}

// excepts reports whether an exception turns an oracle off for an object in the present step.
func (v *verdict) excepts(oracle Oracle, about string) bool {
	return v.plan.excepts(oracle, about, v.trace.step)
}

func (v *verdict) failed() bool { return len(v.violations) > 0 || v.stopped }

// replace makes a violation the only one.
func (v *verdict) replace(violation Violation) {
	v.violations = nil
	v.violate(violation)
}

// evidence is what each oracle sees: the scenario with its reference, the world, and the trace.
type evidence struct {
	*verdict

	plan  *plan
	world *world
	trace *trace
}

// history returns what has happened to the objects of the run so far.
func (e *evidence) history() judge.History {
	return judge.History{
		Server: e.world.server, Names: e.world.generated, Reader: e.plan.reader(), Authors: e.trace.authors,
		IsProgram: e.plan.isProgram,
	}
}

// oracles has one type for each oracle. A few oracles report violations of others: the comparison of end states also
// finds duplicates and objects that should have been deleted.
type oracles struct {
	world *world
	trace *trace

	quiescence    quiescenceOracle
	endState      endStateOracle
	idempotence   idempotenceOracle
	duplicates    duplicatesOracle
	deletion      deletionOracle
	status        statusOracle
	errors        errorsOracle
	sharedObjects sharedObjectsOracle
	leaks         leaksOracle
	advice        adviceOracle
}

func newOracles(e evidence, s *scheduler, schedule inject.Schedule, twice bool) oracles {
	return oracles{
		world: e.world, trace: e.trace,
		quiescence:    quiescenceOracle{evidence: e, scheduler: s, faults: len(schedule), rates: map[request]rate{}},
		endState:      newEndStateOracle(e),
		idempotence:   idempotenceOracle{evidence: e, twice: twice},
		duplicates:    duplicatesOracle{evidence: e, Ledger: judge.NewLedger(), creators: map[types.UID]*activity{}},
		deletion:      deletionOracle{evidence: e, finalized: map[string]bool{}},
		status:        statusOracle{evidence: e, faults: len(schedule)},
		errors:        errorsOracle{evidence: e},
		sharedObjects: sharedObjectsOracle{evidence: e},
		leaks:         leaksOracle{evidence: e},
		advice:        adviceOracle{evidence: e},
	}
}

// changed is called for each watch event of the API server.
func (o *oracles) changed(e memapi.Event) {
	o.duplicates.changed(e)
	o.endState.changed(e)
	if e.Kind != o.endState.running.primary || !o.world.plan.isProgram(e.Client) {
		return
	}
	o.deletion.changed(e)
	o.status.changed(e)
}

// cloudChanged is called when a call of the process has changed the external system. The primary object is that of the
// reconcile, or nil. counted is set unless a fault explains repeated changes.
func (o *oracles) cloudChanged(verb, key string, existed, counted bool, primary client.Object) {
	if primary == nil {
		return
	}
	if counted {
		o.duplicates.cloudChanged(verb, key, existed)
	}
	if verb != "delete" {
		o.deletion.effect(primary, "cloud "+verb+" "+key)
	}
}

// settled checks the state at a Settle, until an oracle fails: all share one verdict. again reconciles all objects once
// more.
func (o *oracles) settled(s *state.Snapshot, skipped []int, of processes, again func()) {
	o.endState.check(s, skipped)
	if !o.endState.failed() {
		o.deletion.settled(s, again)
	}
	if !o.endState.failed() {
		o.status.settled()
	}
	if !o.endState.failed() {
		o.idempotence.check(again)
	}
	if !o.endState.failed() {
		o.sharedObjects.check(of)
	}
}

// ended checks the whole run. reference is set for the first run without faults.
func (o *oracles) ended(skipped []int, merged, reference bool) {
	if !merged {
		o.duplicates.check(skipped)
	}
	if reference {
		o.status.checkReady()
	}
	o.deletion.checkProtected()
}

// primaryName names a primary object in messages.
func (e *evidence) primaryName(obj client.Object) string {
	return e.running.primary.Kind + " " + phrase.Name(client.ObjectKeyFromObject(obj))
}

func ownersOf(obj client.Object) []types.UID {
	var uids []types.UID
	for _, owner := range obj.GetOwnerReferences() {
		uids = append(uids, owner.UID)
	}
	return uids
}

// isOwnedBy reports whether an object has an owner reference with a UID.
func isOwnedBy(obj client.Object, uid types.UID) bool { return slices.Contains(ownersOf(obj), uid) }
