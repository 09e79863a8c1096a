// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"testing/synctest"
	"time"

	"trueup.dev/converge/internal/judge"
)

// work runs the loop until a time or, if that is zero, until the controller is idle. Each turn does one thing: the
// order decides which of several possible things happens first. At the end of a Sleep, reconciles that are running stay
// where they are, and go on in the next step.
func (r *run) work(until time.Time) {
	for !r.failed() {
		synctest.Wait()
		if dead := r.processes.dead(); dead != nil {
			r.restart(dead)
			continue
		}
		r.processes.nextTurn()
		r.oracles.quiescence.turn(r.processes)
		if r.processes.endDelivery() || r.finishReconciles() || r.syncNewHandlers() || r.watches.deliverNext() {
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
	r.scheduler.sleepUntil = until
	clear(r.oracles.quiescence.rates)
	since := r.world.server.Version()
	r.work(until)
	r.scheduler.sleepUntil = time.Time{}
	r.oracles.quiescence.slept(since)
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
			r.oracles.quiescence.idle(r.processes)
			return r.processes.restartWhenIdle()
		}
		if r.oracles.quiescence.waiting(r.processes) {
			return false
		}
	} else if !ok || next.After(until) {
		next, ok = until, true
		if !until.After(time.Now()) {
			return false
		}
	}
	if limit := time.Now().Add(r.plan.Patience); !ok || next.After(limit) {
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
		r.oracles.quiescence.turns = 0
	}
	return true
}

// startNext starts a reconcile of a request that is due, and reports whether there was one.
func (r *run) startNext() bool {
	item, ok := r.processes.take(r.scheduler.due)
	if ok {
		item.queue.start(item, r.started(item.queue.process, item))
	}
	return ok
}

// started records the start of a reconcile of a process.
func (r *run) started(p *process, item queued) *activity {
	r.trace.reconciles++
	if !slices.Contains(r.requested, item.request) {
		r.requested = append(r.requested, item.request)
	}
	r.scheduler.started(item)
	a := &activity{
		request: item.request, process: p, number: r.trace.reconciles, changes: r.trace.changes,
		author: judge.Author{Controller: item.controller, Key: item.NamespacedName, Cause: item.cause},
	}
	a.name = p.program.reconcileName(a.number)
	p.mu.Lock()
	p.active = append(p.active, a)
	p.mu.Unlock()
	r.trace.begin(a)
	return a
}

// finishReconciles handles the reconciles that have ended, and reports whether there were any.
func (r *run) finishReconciles() bool {
	for _, p := range r.processes {
		if r.finishReconcilesOf(p) {
			return true
		}
	}
	return false
}

// finishReconcilesOf handles the reconciles of a process that have ended, and reports whether there were any.
func (r *run) finishReconcilesOf(p *process) bool {
	ended := p.ended()
	for _, a := range ended {
		r.trace.end(a)
		if !a.returned && a.panicked == nil {
			continue // the process has ended first
		}
		p.requeue(a)
		r.scheduler.finished(a)
		r.oracles.errors.finished(a)
		r.trace.lastResult = a
		r.watches.reconciled(p, a.number)
		r.gateway.land(r.processes.only(p))
		r.oracles.quiescence.finished(r.processes, a)
	}
	return len(ended) > 0
}

// restart starts the next process of a program after a crash.
func (r *run) restart(old *process) {
	synctest.Wait()
	number := old.number + 1
	next := r.plan.of(number)
	program := next.programs[old.program.index]
	if next != r.running && !r.upgrade(next, number) {
		return
	}
	r.trace.start(program, number, next.version)
	r.start(program, number, old.nextStale...)
}
