// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing/synctest"
	"time"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/world"
)

// work runs the loop until a time or, if that is zero, until the controller is idle. Each turn does one thing: the
// order decides which of several possible things happens first. At the end of a Sleep, reconciles that are running stay
// where they are, and go on in the next step.
func (r *run) work(until time.Time) {
	for !r.verdict.Failed() {
		synctest.Wait()
		if dead := r.processes.dead(); dead != nil {
			r.restart(dead)
			continue
		}
		r.processes.nextTurn()
		r.oracles.Quiescence.Turn()
		if r.processes.endDelivery() || slices.ContainsFunc(r.processes, r.finishReconcilesOf) ||
			r.syncNewHandlers() || r.watches.deliverNext() {
			continue
		}
		if r.scheduler.sleepIsOver() {
			return
		}
		// Controllers with several workers, and several processes, start all reconciles before one of them goes on.
		if r.processes.concurrent() && r.startNext() || r.gateway.serveNext(r.processes) || r.actors.actNext() ||
			r.startNext() || r.actDue() {
			continue
		}
		if !r.advanceTime(until) {
			return
		}
	}
}

// sleep runs the loop for exactly this time.
func (r *run) sleep(d time.Duration) {
	until := time.Now().Add(d)
	r.scheduler.SleepUntil = until
	r.oracles.Quiescence.SleepBegins()
	since := r.world.Server.Version()
	r.work(until)
	r.scheduler.SleepUntil = time.Time{}
	r.oracles.Quiescence.Slept(since)
}

// actDue performs a deferred action that is due, and reports whether there was one.
func (r *run) actDue() bool {
	do := r.scheduler.takeDue()
	if do == nil {
		return false
	}
	do()
	r.watches.forward()
	return true
}

// advanceTime lets time pass until something is due. It returns false if nothing will happen any more, or not before a
// time.
func (r *run) advanceTime(until time.Time) bool {
	settling, busy := until.IsZero(), r.processes.busy()
	if !busy && r.gateway.permitAgain() {
		return true
	}
	if settling && !busy && (r.watches.releaseIdle() || r.actors.actDeferred() || r.gateway.land(r.processes)) {
		return true
	}
	next, ok := r.scheduler.next(r.processes)
	if settling {
		if !busy && (!ok || r.scheduler.idleEnough(r.processes)) {
			r.oracles.Quiescence.Idle()
			return r.processes.restartWhenIdle()
		}
		if r.oracles.Quiescence.Waiting() {
			return false
		}
	} else if !ok || next.After(until) {
		next, ok = until, true
		if !until.After(time.Now()) {
			return false
		}
	}
	if limit := time.Now().Add(r.machine.Patience); !ok || next.After(limit) {
		next = limit
	}
	now := time.Now()
	timer := time.NewTimer(next.Sub(now))
	defer timer.Stop()
	select {
	case <-r.scheduler.woken:
	case <-timer.C:
	}
	if time.Now().After(now) {
		r.oracles.Quiescence.TimePasses()
	}
	return true
}

// startNext starts a reconcile of a request that is due, and reports whether there was one.
func (r *run) startNext() bool {
	item, ok := r.processes.take(r.scheduler.due)
	if ok {
		item.queue.start(item, item.queue.process.started(item))
	}
	return ok
}

// started records the start of a reconcile of a process.
func (p *Process) started(item queued) *activity {
	p.trace.Reconciles++
	p.scheduler.started(item)
	a := &activity{process: p, Reconcile: world.Reconcile{
		RequestOf: item.RequestOf, Number: p.trace.Reconciles, Client: p.program.Client, Changes: p.trace.Changes,
		Author: world.Author{Controller: item.Controller, Key: item.NamespacedName, Cause: item.cause},
	}}
	a.Name = p.program.reconcileName(a.Number)
	p.mu.Lock()
	p.active = append(p.active, a)
	p.mu.Unlock()
	p.trace.Begin(&a.Reconcile)
	return a
}

// finishReconcilesOf handles the reconciles of a process that have ended, and reports whether there were any.
func (r *run) finishReconcilesOf(p *Process) bool {
	ended := p.ended()
	for _, a := range ended {
		r.trace.End(&a.Reconcile)
		if !a.Returned && a.Panicked == nil {
			continue // the process has ended first
		}
		p.requeue(a)
		r.scheduler.finished(a)
		r.oracles.Errors.Finished(&a.Reconcile)
		r.trace.LastResult = &a.Reconcile
		r.watches.reconciled(p, a.Number)
		r.gateway.land(r.processes.only(p))
		r.oracles.Quiescence.Finished(&a.Reconcile)
	}
	return len(ended) > 0
}

// restart starts the next process of a program after a crash.
func (r *run) restart(old *Process) {
	synctest.Wait()
	number := old.number + 1
	next := r.machine.of(number)
	program := next.Programs[old.program.Index]
	if next != r.versions.running && !r.upgrade(next, number) {
		return
	}
	r.trace.Start(program.who(), number, next.Name)
	r.start(program, number, old.nextStale...)
}

// upgrade ends the processes of the present version, and replaces the definitions of custom kinds by the definitions of
// the next one. It reports whether the next version can start.
func (r *run) upgrade(next *Version, number int) bool {
	r.processes.upgrade(number)
	if next.Registry != r.versions.running.Registry {
		if err := r.world.Server.Redefine(next.Registry, next.Applier); err != nil {
			r.verdict.Violate(finding.ScenarioFailure("the definitions of the " + next.Name + " are refused: " + err.Error()))
			return false
		}
	}
	r.versions.run(number)
	r.world.Primary = next.Primary
	return true
}

// versions knows which version of the controller runs.
type versions struct {
	*scene

	running *Version
}

// run makes the version of the processes of a number the one that runs.
func (v *versions) run(number int) {
	v.running = v.machine.of(number)
	v.verdict.Running = v.running.Version
}

// as does something while the version of the processes of a number runs.
func (v *versions) as(number int, do func()) {
	running := v.running
	v.run(number)
	defer func() { v.running, v.verdict.Running = running, running.Version }()
	do()
}
