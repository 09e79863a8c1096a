// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"time"
)

// scheduler knows what is due at which time, and whether the controller is idle.
type scheduler struct {
	plan  *plan
	trace *trace
	// woken signals that a process waits for an answer.
	woken chan struct{}
	// deferred are actions that are due at a time.
	deferred []deferredAction

	// idle counts the reconciles of a request without a change since the last change.
	idle map[request]int
	// longTimers has the due times of requests that are requeued after a long time.
	longTimers map[request]time.Time
	// longTimed are the requests that have ever been requeued after a long time.
	longTimed map[request]bool
	// waited are the requests whose long timer has expired since the last Settle.
	waited map[request]wait
	// lastChange is the time of the last change.
	lastChange time.Time
	// settleStart is when the present Settle began, and recent counts the reconciles since then.
	settleStart time.Time
	recent      int
	// sleeping is set during a Sleep of the users, which has no limit of reconciles.
	sleeping bool
}

// deferredAction is an action that is due at a time.
type deferredAction struct {
	at time.Time
	do func()
}

// wait counts how often the long timer of a request has expired, and the changes of other clients until then.
type wait struct{ times, foreignChanges int }

// A polling request is given up after pollTime, or after maxPolls reconciles without a change.
const (
	pollTime = 15 * time.Second
	maxPolls = 50
	// longTime is the shortest delay that is awaited only once: the work after it may be the same each time.
	longTime = 30 * time.Minute
)

// hotTime is the least time that maxPolls reconciles take, unless the request is a hot loop.
const hotTime = time.Second

// maxWaits limits how often another minute, or another long timer, is awaited.
const maxWaits = 5

func newScheduler(p *plan, t *trace) scheduler {
	return scheduler{
		plan: p, trace: t, woken: make(chan struct{}, 1), idle: map[request]int{}, longTimers: map[request]time.Time{},
		longTimed: map[request]bool{}, waited: map[request]wait{}, settleStart: time.Now(),
	}
}

// wake wakes up the loop of the run.
func (s *scheduler) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// after defers an action.
func (s *scheduler) after(d time.Duration, do func()) {
	s.deferred = append(s.deferred, deferredAction{at: time.Now().Add(d), do: do})
}

// takeDue removes and returns the first deferred action that is due, or nil.
func (s *scheduler) takeDue() func() {
	first := -1
	for n, action := range s.deferred {
		if !action.at.After(time.Now()) && (first < 0 || action.at.Before(s.deferred[first].at)) {
			first = n
		}
	}
	if first < 0 {
		return nil
	}
	do := s.deferred[first].do
	s.deferred = slices.Delete(s.deferred, first, first+1)
	return do
}

// next returns the time of the next deferred action or request, as far as it is known.
func (s *scheduler) next(p *process) (time.Time, bool) {
	var next time.Time
	consider := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if items := p.queue.items; !p.busy() && len(items) > 0 {
		if p.manager == nil {
			consider(items[0].due)
		} else {
			// The queues of controllers have their own timers.
			consider(time.Now().Add(s.plan.Patience))
		}
	}
	for _, action := range s.deferred {
		consider(action.at)
	}
	return next, !next.IsZero()
}

// startSettle starts the count of reconciles, and of the time that a Settle may take.
func (s *scheduler) startSettle() { s.recent, s.settleStart = 0, time.Now() }

// changed records a change, or that a cache has received one: a request that was idle may have work now.
func (s *scheduler) changed() {
	clear(s.idle)
	s.lastChange = time.Now()
}

// started records the start of a reconcile.
func (s *scheduler) started(req request) {
	s.recent++
	if due, ok := s.longTimers[req]; ok && !time.Now().Before(due) {
		s.waited[req] = wait{s.waited[req].times + 1, s.trace.foreignChanges}
	}
	delete(s.longTimers, req)
}

// finished records the end of a reconcile.
func (s *scheduler) finished(a *activity) {
	if after := a.result.RequeueAfter; a.err == nil && (after >= longTime || after > 0 && s.longTimed[a.request]) {
		s.longTimers[a.request], s.longTimed[a.request] = time.Now().Add(after), true
	}
	switch {
	case a.err != nil || a.panicked != nil || len(a.failed) > 0 || a.refused:
		delete(s.idle, a.request) // a retry may succeed
	case a.changes == s.trace.changes:
		s.idle[a.request]++
	}
}

// idleEnough reports whether no queued request is going to change anything: each one was reconciled twice without a
// change, or is due only after a long time.
func (s *scheduler) idleEnough(q *queue) bool {
	if len(s.deferred) > 0 {
		return false
	}
	polled := time.Since(s.lastChange) >= pollTime
	for _, item := range q.items {
		_, long := s.longTimers[item.request]
		awaited := long && s.awaited(item.request)
		never := item.due.Sub(s.settleStart) >= s.plan.Patience/2 && q.failures[item.request] == 0
		if awaited || never {
			continue
		}
		if idle := s.idle[item.request]; idle < 2 || !polled && idle < maxPolls {
			return false
		}
	}
	return true
}

// awaited reports whether the long timer of a request need not be awaited again.
func (s *scheduler) awaited(req request) bool {
	w := s.waited[req]
	return w.times >= maxWaits || w.times > 0 && w.foreignChanges == s.trace.foreignChanges
}
