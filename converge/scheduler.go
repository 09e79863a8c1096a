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
	idle map[request]idleCount
	// longTimed are the requests that have ever been requeued after a long time.
	longTimed map[request]bool
	// waited are the requests whose long timer has expired since the last Settle.
	waited map[request]wait
	// lastChange is the time of the last change.
	lastChange time.Time
	// settleStart is when the present Settle began, and recent counts the reconciles since then.
	settleStart time.Time
	recent      int
	// mayFail is set during a Settle at which a request that fails again and again is idle.
	mayFail bool
	// sleepUntil is the end of the present Sleep of the users, or zero.
	sleepUntil time.Time
}

// idleCount counts the reconciles of a request without a change.
type idleCount struct {
	times int
	// since is the end of the last one whose number is a multiple of maxPolls, and took is how long those maxPolls took.
	since time.Time
	took  time.Duration
}

// hot reports whether the request is reconciled again and again without a delay.
func (c idleCount) hot() bool { return c.times >= maxPolls && c.took < hotTime }

// next counts another reconcile. The last change was at a time.
func (c idleCount) next(lastChange time.Time) idleCount {
	if c.times == 0 {
		c.since = lastChange
	}
	c.times++
	if c.times%maxPolls == 0 {
		c.took, c.since = time.Since(c.since), time.Now()
	}
	return c
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
	// During a Sleep, a polling request waits for a pollShare of the time since the last change, at most maxPollDelay.
	pollShare    = 200
	maxPollDelay = 10 * time.Minute
)

// hotTime is the least time that maxPolls reconciles take, unless the request is a hot loop.
const hotTime = time.Second

// maxWaits limits how often another minute, or another long timer, is awaited.
const maxWaits = 5

func newScheduler(p *plan, t *trace) scheduler {
	return scheduler{
		plan: p, trace: t, woken: make(chan struct{}, 1), idle: map[request]idleCount{}, longTimed: map[request]bool{},
		waited: map[request]wait{}, settleStart: time.Now(),
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

// due returns when a request may be reconciled. During a Sleep, a request that polls without any change waits longer
// and longer, so that a long Sleep takes little real time.
func (s *scheduler) due(item queued) time.Time {
	if !s.sleeping() || item.delay == 0 || s.idle[item.request].times < maxPolls {
		return item.due
	}
	added := item.due.Add(-item.delay)
	if delay := min(added.Sub(s.lastChange)/pollShare, maxPollDelay); delay > item.delay {
		return added.Add(delay)
	}
	return item.due
}

// next returns the time of the next deferred action or request, as far as it is known.
func (s *scheduler) next(of processes) (time.Time, bool) {
	var next time.Time
	consider := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for item := range of.queued() {
		switch {
		case item.queue.shadow && !item.queue.process.busy():
			consider(time.Now().Add(s.plan.Patience)) // the queue of the controller has its own timers
		case item.queue.canStart(item.Request):
			consider(s.due(item))
		}
	}
	for _, action := range s.deferred {
		consider(action.at)
	}
	return next, !next.IsZero()
}

// sleeping reports whether users sleep.
func (s *scheduler) sleeping() bool { return !s.sleepUntil.IsZero() }

// sleepIsOver reports whether the Sleep of the users has ended.
func (s *scheduler) sleepIsOver() bool { return s.sleeping() && !time.Now().Before(s.sleepUntil) }

// startSettle starts the count of reconciles, and of the time that a Settle may take.
func (s *scheduler) startSettle() { s.recent, s.settleStart = 0, time.Now() }

// changed records a change, or that a cache has received one: a request that was idle may have work now.
func (s *scheduler) changed() {
	clear(s.idle)
	s.lastChange = time.Now()
}

// started records the start of a reconcile.
func (s *scheduler) started(item queued) {
	s.recent++
	if s.long(item) && !time.Now().Before(item.due) {
		s.waited[item.request] = wait{s.waited[item.request].times + 1, s.trace.foreignChanges}
	}
}

// long reports whether a request is queued after a long time, or was once and waits for the rest of it.
func (s *scheduler) long(item queued) bool {
	return !item.retry && (item.delay >= longTime || item.delay > 0 && s.longTimed[item.request])
}

// finished records the end of a reconcile.
func (s *scheduler) finished(a *activity) {
	if a.err == nil && a.result.RequeueAfter >= longTime {
		s.longTimed[a.request] = true
	}
	switch {
	case a.err != nil && !s.mayFail || a.panicked != nil || len(a.failed) > 0 || a.refused:
		delete(s.idle, a.request) // a retry may succeed
	case a.changes == s.trace.changes:
		s.idle[a.request] = s.idle[a.request].next(s.lastChange)
	}
}

// idleEnough reports whether no queued request is going to change anything: each one was reconciled twice without a
// change, or is due only after a long time.
func (s *scheduler) idleEnough(of processes) bool {
	if len(s.deferred) > 0 {
		return false
	}
	polled := time.Since(s.lastChange) >= pollTime
	for item := range of.queued() {
		if !item.queue.shadow && !item.queue.canStart(item.Request) {
			continue // the controller was not started
		}
		awaited := s.long(item) && s.awaited(item.request)
		never := item.due.Sub(s.settleStart) >= s.plan.Patience/2 && !item.retry
		if awaited || never {
			continue
		}
		if idle := s.idle[item.request].times; idle < 2 || !polled && idle < maxPolls {
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
