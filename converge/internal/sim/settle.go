// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// stayTime is how much later all objects are reconciled again.
const stayTime = 61 * time.Second

// perform performs the steps of the users.
func (r *run) perform() {
	for steps := r.machine.Steps; r.trace.Step < len(steps) && !r.verdict.Failed(); r.trace.Step++ {
		step := steps[r.trace.Step]
		switch {
		case slices.Contains(r.users.skip, r.trace.Step):
		case step.Settle:
			r.settle()
		case step.Sleep > 0:
			r.trace.User(step.Name, false, false, nil)
			r.sleep(step.Sleep)
		default:
			r.users.take(step)
		}
	}
	r.world.Over = true
}

// settle waits until the controller is idle, injects the faults of that moment, and lets the oracles check the state.
func (r *run) settle() {
	r.trace.User("settle", true, false, nil)
	r.trace.MayFail = r.machine.Steps[r.trace.Step].MayFail
	r.scheduler.startSettle()
	clear(r.scheduler.waited)
	r.work(time.Time{})
	if r.verdict.Failed() {
		return
	}
	if r.disturb() {
		r.users.deleted()
		r.work(time.Time{})
	}
	r.waitForPolling()
	if r.verdict.Failed() {
		return
	}
	s := r.world.Snapshot()
	r.faults.off = true
	r.oracles.Settled(s, r.users.skipped, r.reconcileAll)
	r.faults.off = false
	r.scheduler.requested = nil
	r.users.settled()
	r.trace.Settle(s)
}

// disturb injects the faults of an idle controller, and reports whether it has injected one.
func (r *run) disturb() bool {
	disturbed := false
	for _, p := range r.processes {
		disturbed = r.disturbProcess(p) || disturbed
	}
	step := types.NamespacedName{Name: fmt.Sprint("step ", r.trace.Step+1)}
	disturbed = r.removed.disturb(step) || disturbed
	disturbed = r.users.disturb("when", inject.Site{Act: "quiet", Key: step}) || disturbed
	return r.others.disturb() || disturbed
}

// disturbProcess injects the faults of an idle process, and reports whether it has injected one.
func (r *run) disturbProcess(p *Process) bool {
	disturbed := false
	step := types.NamespacedName{Name: fmt.Sprint("step ", r.trace.Step+1)}
	if r.faults.at(p.site("quiet", "", step), inject.SetOf(inject.Restart)) == inject.Restart {
		r.trace.Fault(p.program.who(), "ends", inject.Restart)
		p.die()
		disturbed = true
	}
	for _, i := range p.informers {
		var moments []int
		if r.machine.Faults.Has(inject.StaleStart) {
			moments = staleMoments(r.world.EventsOf(i.kind), i.kind == r.versions.running.Primary)
		}
		for _, back := range moments {
			key := types.NamespacedName{Namespace: step.Name, Name: fmt.Sprint(back, " back")}
			at := p.site("quiet", i.kind.Kind, key)
			if r.faults.at(at, inject.SetOf(inject.StaleStart)) == inject.StaleStart {
				r.trace.Fault(
					p.program.who(), fmt.Sprintf("ends; the cache of %s starts %s behind", i.kind.Kind, phrase.Plural(back, "event")),
					inject.StaleStart,
				)
				p.die()
				p.nextStale = append(p.nextStale, staleStart{i.kind, back})
				disturbed = true
			}
		}
	}
	return disturbed
}

// waitForPolling lets time pass for requests that poll, for work that handlers have delayed, and until a controller
// notices that a kind is served again.
func (r *run) waitForPolling() {
	for range maxWaits {
		if r.verdict.Failed() || r.processes.done() {
			return
		}
		changes, returns := r.trace.Changes, r.removed.returns()
		time.Sleep(stayTime)
		r.scheduler.startSettle()
		r.work(time.Time{})
		if r.trace.Changes == changes && r.removed.returns() == returns {
			return
		}
	}
}

// reconcileAll reconciles all objects again.
func (r *run) reconcileAll() {
	r.trace.Note("checks", "reconciles all objects again")
	for i := range r.processes.informers() {
		if i.kind == r.versions.running.Primary {
			i.resync = true
		}
	}
	time.Sleep(stayTime) // for work that depends on the time of day
	// Predicates may drop a resync.
	for _, req := range r.scheduler.requested {
		r.processes[req.Program].ask(req)
	}
	r.scheduler.startSettle()
	r.work(time.Time{})
}
