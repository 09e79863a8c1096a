// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"testing/synctest"
	"time"
)

// work runs the loop until a time or, if that is zero, until the controller is idle. Each turn does one thing: the
// order decides which of several possible things happens first.
func (r *run) work(until time.Time) {
	for !r.failed() {
		synctest.Wait()
		if r.process.dead.Load() {
			r.restart()
			continue
		}
		if r.process.endDelivery() || r.finishReconciles() || r.syncNewHandlers() || r.watches.deliverNext() ||
			r.gateway.serveNext() || r.actors.actNext() || r.startNext() || r.actDue() {
			continue
		}
		if !r.advanceTime(until) {
			return
		}
	}
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
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-r.scheduler.woken:
	case <-timer.C:
	}
	return true
}

// startNext starts a reconcile of a request that is due, and reports whether there was one. The queues of controllers
// start their own.
func (r *run) startNext() bool {
	p := r.process
	if p.reconciler == nil || p.busy() {
		return false
	}
	req, ok := p.queue.take(time.Now())
	if !ok {
		return false
	}
	go p.reconcile(p.ctx, r.started(req), p.reconciler, false)
	return true
}

// started records the start of a reconcile.
func (r *run) started(req request) *activity {
	r.trace.reconciles++
	if !slices.Contains(r.requested, req) {
		r.requested = append(r.requested, req)
	}
	r.process.queue.remove(req)
	r.scheduler.started(req)
	a := &activity{request: req, number: r.trace.reconciles, changes: r.trace.changes}
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
		r.process.queue.finish(a, time.Now())
		r.scheduler.finished(a)
		r.oracles.errors.finished(a)
		r.trace.lastResult = a
		r.watches.reconciled(a.number)
		r.gateway.land()
		r.oracles.quiescence.finished(r.process)
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
