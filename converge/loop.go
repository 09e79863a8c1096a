// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"
)

// work has everything happen that is to happen until a time, or, if that is zero, until all is quiet.
func (r *run) work(until time.Time) {
	for !r.failed() {
		synctest.Wait()
		if r.process.dead.Load() {
			r.restart()
			continue
		}
		if r.endDelivery() || r.finishReconciles() || r.join() || r.deliverNext() || r.serveNext() || r.actNext() ||
			r.startNext() || r.doLater() {
			continue
		}
		if !r.pass(until) {
			return
		}
	}
}

// deliverNext has a cache get an event that has come.
func (r *run) deliverNext() bool {
	if r.process.delivering {
		return false
	}
	for _, i := range r.process.informers {
		if i.resync {
			i.resync = false
			var changes []change
			for _, obj := range i.objects {
				changes = append(changes, change{before: obj, after: obj})
			}
			r.deliver(i, changes)
			return true
		}
		if i.due() {
			r.stir()
			r.log.arrive(r, i)
			r.deliver(i, []change{i.next()})
			return true
		}
	}
	return false
}

// endDelivery notes that a cache has told of a change, and has it tell the next one, if there is one.
func (r *run) endDelivery() bool {
	p := r.process
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.delivered {
		return false
	}
	p.delivering, p.delivered = false, false
	if len(p.deliveries) == 0 {
		return false
	}
	next := p.deliveries[0]
	p.deliveries = p.deliveries[1:]
	r.inDelivery(next)
	return true
}

// doLater does what is due.
func (r *run) doLater() bool {
	at := -1
	for n, p := range r.later {
		if !p.at.After(time.Now()) && (at < 0 || p.at.Before(r.later[at].at)) {
			at = n
		}
	}
	if at < 0 {
		return false
	}
	p := r.later[at]
	r.later = slices.Delete(r.later, at, at+1)
	p.do()
	r.changed()
	return true
}

// pass lets time pass, until something is due. It returns false when nothing is going to happen any more, or not before
// until.
func (r *run) pass(until time.Time) bool {
	busy := len(r.process.active) > 0 || r.process.delivering
	if until.IsZero() && !busy {
		// What waits for the world to be quiet has waited long enough.
		for _, i := range r.process.informers {
			if i.held != nil && i.held.fault != FaultLagLong && i.held.fault != FaultRelist {
				r.release(i)
				return true
			}
		}
		if r.lateActor() || r.land() {
			return true
		}
	}
	next, ok := r.nextTime()
	if until.IsZero() {
		if !busy && (!ok || r.calmEnough()) {
			r.checkHot()
			if r.restartWhenQuiet {
				r.restartWhenQuiet = false
				r.crash()
				return true
			}
			return false
		}
		if time.Since(r.quietAt) > r.plan.Patience {
			r.violate(r.restless("for " + r.plan.Patience.String()))
			return false
		}
	}
	if !until.IsZero() && (!ok || next.After(until)) {
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
	case <-r.woken:
	case <-timer.C:
	}
	return true
}

// nextTime is when something will happen next, as far as that is known.
func (r *run) nextTime() (time.Time, bool) {
	var next time.Time
	consider := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if items := r.process.queue.items; len(r.process.active) == 0 && !r.process.delivering && len(items) > 0 {
		if r.process.manager == nil {
			consider(items[0].due)
		} else {
			// The queues of real controllers have their own timers.
			consider(time.Now().Add(r.plan.Patience))
		}
	}
	for _, p := range r.later {
		consider(p.at)
	}
	return next, !next.IsZero()
}

// calmEnough is true if all that would still be reconciled has been since the last change, twice, with nothing to do,
// or comes back only after a long time.
func (r *run) calmEnough() bool {
	if len(r.later) > 0 {
		return false
	}
	patient := time.Since(r.stirred) >= pollTime
	for _, item := range r.process.queue.items {
		_, far := r.far[item.request]
		known := far && r.waitedFor(item.request)
		never := item.due.Sub(r.quietAt) >= r.plan.Patience/2 && r.process.queue.failures[item.request] == 0
		if known || never {
			continue
		}
		if calm := r.calm[item.request]; calm < 2 || !patient && calm < maxPolls {
			return false
		}
	}
	return true
}

// Who looks again and again, at something that only time changes for example, may do so for pollTime, or maxPolls
// times.
const (
	pollTime = 15 * time.Second
	maxPolls = 50
	// farTime is so long that it is waited for once, and not again: what is to be done then may be the same each time.
	farTime = 30 * time.Minute
)

// hotTime is how long it takes at least to look maxPolls times, for who does not look all the time.
const hotTime = time.Second

// wait tells how often a request has been waited for that was to come back only after a long time, and how many changes
// of others there were then.
type wait struct{ times, foreign int }

// waitedFor is true for a request that need not be waited for again.
func (r *run) waitedFor(req request) bool {
	w := r.waited[req]
	return w.times >= maxWaits || w.times > 0 && w.foreign == r.changesOfOthers
}

// checkHot looks for who looks all the time, with nothing to do.
func (r *run) checkHot() {
	if _, off := r.plan.Off[OracleQuiescence]; off {
		return // it comes to its end all the same
	}
	took := time.Since(r.stirred)
	for _, item := range r.process.queue.items {
		if calm := r.calm[item.request]; calm >= maxPolls && took < hotTime {
			name := nameOf(item.request.NamespacedName)
			r.violate(Violation{
				Oracle: OracleQuiescence, Cause: CauseHotLoop, About: name,
				Message: fmt.Sprintf(
					"%s was reconciled %d times in %s without any change, and is queued again", name, calm,
					took.Round(time.Millisecond),
				),
			})
			return
		}
	}
}

// stir notes a change, or that somebody sees one: what was calm may not be so any more.
func (r *run) stir() {
	clear(r.calm)
	r.stirred = time.Now()
}

// startNext starts a reconcile.
func (r *run) startNext() bool {
	p := r.process
	if p.reconciler == nil || len(p.active) > 0 || p.delivering {
		return false
	}
	req, ok := p.queue.take(time.Now())
	if !ok {
		return false
	}
	go p.reconcile(p.ctx, r.started(req), p.reconciler, false)
	return true
}

// started notes that a reconcile starts.
func (r *run) started(req request) *activity {
	r.reconciles++
	r.recent++
	if !slices.Contains(r.requested, req) {
		r.requested = append(r.requested, req)
	}
	r.process.queue.remove(req)
	if due, ok := r.far[req]; ok && !time.Now().Before(due) {
		w := r.waited[req]
		r.waited[req] = wait{w.times + 1, r.changesOfOthers}
	}
	delete(r.far, req)
	a := &activity{request: req, number: r.reconciles, changes: r.changes}
	a.name = reconcileName(a.number)
	r.process.mu.Lock()
	r.process.active = append(r.process.active, a)
	r.process.mu.Unlock()
	r.log.begin(r, a)
	return a
}

// finishReconciles looks at the reconciles that have ended.
func (r *run) finishReconciles() bool {
	ended := r.process.ended()
	for _, a := range ended {
		r.log.end(r, a)
		if !a.returned && a.panicked == nil {
			continue // it did not come to its end
		}
		r.process.queue.finish(a, time.Now())
		if again := a.result.RequeueAfter; a.err == nil && (again >= farTime || again > 0 && r.patient[a.request]) {
			r.far[a.request], r.patient[a.request] = time.Now().Add(again), true
		}
		switch {
		case a.err != nil || a.panicked != nil || len(a.failed) > 0 || a.refused:
			delete(r.calm, a.request) // the next attempt may do what this one could not
		case a.changes == r.changes:
			r.calm[a.request]++
		}
		r.checkResult(a)
		for _, i := range r.process.informers {
			if i.held != nil && i.held.ends(a.number) {
				r.release(i)
			}
		}
		r.land()
		if limit := r.limit(); r.recent > limit && !r.sleeping {
			r.violate(r.restless("after " + plural(limit, "reconcile")))
		}
	}
	return len(ended) > 0
}

// restart starts the next process, after a crash.
func (r *run) restart() {
	old := r.process
	synctest.Wait()
	r.log.start(r, old.number+1)
	stale := r.stale
	r.stale = nil
	r.start(old.number+1, stale...)
}

// limit is how many reconciles there may be until all is quiet.
func (r *run) limit() int {
	if r.plan.reference == nil {
		return r.plan.MaxReconciles
	}
	return 5*r.plan.reference.reconciles + 10 + 15*len(r.schedule)
}
