// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// stayTime is how much later all objects are reconciled again.
const stayTime = 61 * time.Second

// settle waits until the controller is idle, injects the faults of that moment, and lets the oracles check the state.
func (r *run) settle() {
	r.trace.user(Settle(), nil)
	r.scheduler.mayFail = r.plan.Steps[r.trace.step].mayFail
	r.scheduler.startSettle()
	clear(r.scheduler.waited)
	r.work(time.Time{})
	if r.failed() {
		return
	}
	if r.disturb() {
		r.work(time.Time{})
	}
	r.waitForPolling()
	if r.failed() {
		return
	}
	s := r.world.snapshot()
	r.faults.off = true
	r.oracles.settled(s, r.users.skipped, r.processes, r.reconcileAll)
	r.faults.off = false
	r.requested = nil
	r.users.settled()
	r.trace.settle(s)
}

// disturb injects the faults of an idle controller, and reports whether it has injected one.
func (r *run) disturb() bool {
	disturbed := false
	for _, p := range r.processes {
		disturbed = r.disturbProcess(p) || disturbed
	}
	step := types.NamespacedName{Name: fmt.Sprint("step ", r.trace.step+1)}
	disturbed = r.users.disturb("when", inject.Site{Act: "quiet", Key: step}) || disturbed
	return r.others.disturb() || disturbed
}

// disturbProcess injects the faults of an idle process, and reports whether it has injected one.
func (r *run) disturbProcess(p *process) bool {
	disturbed := false
	step := types.NamespacedName{Name: fmt.Sprint("step ", r.trace.step+1)}
	if r.faults.at(p.site("quiet", "", step), inject.SetOf(FaultRestart)) == FaultRestart {
		r.trace.fault(p.program.who(), "ends", FaultRestart)
		p.die()
		disturbed = true
	}
	for _, i := range p.informers {
		var moments []int
		if r.plan.faults.Has(FaultStaleStart) {
			moments = staleMoments(r.world.eventsOf(i.kind), i.kind == r.running.primary)
		}
		for _, back := range moments {
			key := types.NamespacedName{Namespace: step.Name, Name: fmt.Sprint(back, " back")}
			at := p.site("quiet", i.kind.Kind, key)
			if r.faults.at(at, inject.SetOf(FaultStaleStart)) == FaultStaleStart {
				r.trace.fault(
					p.program.who(), fmt.Sprintf("ends; the cache of %s starts %s behind", i.kind.Kind, phrase.Plural(back, "event")),
					FaultStaleStart,
				)
				p.die()
				p.nextStale = append(p.nextStale, staleStart{i.kind, back})
				disturbed = true
			}
		}
	}
	return disturbed
}

// waitForPolling lets time pass for requests that poll, and for work that handlers have delayed.
func (r *run) waitForPolling() {
	for range maxWaits {
		if r.failed() || r.processes.done() {
			return
		}
		changes := r.trace.changes
		time.Sleep(stayTime)
		r.scheduler.startSettle()
		r.work(time.Time{})
		if r.trace.changes == changes {
			return
		}
	}
}

// reconcileAll reconciles all objects again.
func (r *run) reconcileAll() {
	r.trace.note("checks", "reconciles all objects again")
	for i := range r.processes.informers() {
		if i.kind == r.running.primary {
			i.resync = true
		}
	}
	time.Sleep(stayTime) // for work that depends on the time of day
	// Predicates may drop a resync.
	for _, req := range r.requested {
		r.processes[req.program].ask(req)
	}
	r.scheduler.startSettle()
	r.work(time.Time{})
}
