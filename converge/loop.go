// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"testing/synctest"
	"time"
)

// work runs the loop until a time or, if that is zero, until the controller is idle. Each turn does one thing: the
// order decides which of several possible things happens first. At the end of a Sleep, reconciles that are running stay
// where they are, and go on in the next step.
func (r *run) work(until time.Time) {
	for !r.failed() {
		synctest.Wait()
		if r.process.dead.Load() {
			r.restart()
			continue
		}
		r.process.queue.turn.Add(1)
		r.oracles.quiescence.turn(r.process)
		if r.process.endDelivery() || r.finishReconciles() || r.syncNewHandlers() || r.watches.deliverNext() {
			continue
		}
		if r.scheduler.sleepIsOver() {
			return
		}
		// Controllers with several workers start all reconciles before one of them goes on.
		if r.process.manager != nil && r.startNext() || r.gateway.serveNext() || r.actors.actNext() ||
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
	r.work(until)
	r.scheduler.sleepUntil = time.Time{}
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
	settling, busy := until.IsZero(), r.process.busy()
	if settling && !busy && (r.watches.releaseIdle() || r.actors.actDeferred() || r.gateway.land()) {
		return true
	}
	next, ok := r.scheduler.next(r.process)
	if settling {
		if !busy && (!ok || r.scheduler.idleEnough(&r.process.queue)) {
			r.oracles.quiescence.idle(&r.process.queue)
			if r.others.restartWhenIdle {
				r.others.restartWhenIdle = false
				r.crash()
				return true
			}
			return false
		}
		if r.oracles.quiescence.waiting(r.process) {
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
	item, ok := r.process.queue.take(r.scheduler.due)
	if ok {
		item.queue.start(item, r.started(item))
	}
	return ok
}

// started records the start of a reconcile.
func (r *run) started(item queued) *activity {
	r.trace.reconciles++
	if !slices.Contains(r.requested, item.request) {
		r.requested = append(r.requested, item.request)
	}
	r.scheduler.started(item)
	a := &activity{request: item.request, number: r.trace.reconciles, changes: r.trace.changes}
	a.name = reconcileName(a.number)
	r.process.mu.Lock()
	r.process.active = append(r.process.active, a)
	r.process.mu.Unlock()
	r.trace.begin(a)
	return a
}

// finishReconciles handles the reconciles that have ended, and reports whether there were any.
func (r *run) finishReconciles() bool {
	ended := r.process.ended()
	for _, a := range ended {
		r.trace.end(a)
		if !a.returned && a.panicked == nil {
			continue // the process has ended first
		}
		r.process.requeue(a)
		r.scheduler.finished(a)
		r.oracles.errors.finished(a)
		r.trace.lastResult = a
		r.watches.reconciled(a.number)
		r.gateway.land()
		r.oracles.quiescence.finished(r.process, a)
	}
	return len(ended) > 0
}

// restart starts the next process after a crash.
func (r *run) restart() {
	old := r.process
	synctest.Wait()
	r.trace.start(old.number + 1)
	stale := r.stale
	r.stale = nil
	r.start(old.number+1, stale...)
}
