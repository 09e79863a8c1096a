// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/world"
)

// scheduler knows what is due at which time, and whether the controller is idle.
type scheduler struct {
	judge.Pace

	// patience is the patience of the scenario.
	patience time.Duration
	trace    *world.Trace
	// woken signals that a process waits for an answer.
	woken chan struct{}
	// deferred are actions that are due at a time.
	deferred []deferredAction

	// longTimed are the requests that have ever been requeued after a long time.
	longTimed map[world.RequestOf]bool
	// waited are the requests whose long timer has expired since the last Settle.
	waited map[world.RequestOf]wait
	// requested are the requests since the last Settle, in their order.
	requested []world.RequestOf
}

// deferredAction is an action that is due at a time.
type deferredAction struct {
	at time.Time
	do func()
	// idle reports whether a Settle need not wait for it. Optional.
	idle func() bool
}

// wait counts how often the long timer of a request has expired, and the changes of other clients until then.
type wait struct{ times, foreignChanges int }

const (
	// longTime is the shortest delay that is awaited only once: the work after it may be the same each time.
	longTime = 30 * time.Minute
	// During a Sleep, a polling request waits for a pollShare of the time since the last change, at most maxPollDelay.
	pollShare    = 200
	maxPollDelay = 10 * time.Minute
)

// maxWaits limits how often another minute, or another long timer, is awaited.
const maxWaits = 5

func newScheduler(patience time.Duration, t *world.Trace) scheduler {
	return scheduler{
		Pace: judge.Pace{Idle: map[world.RequestOf]judge.IdleCount{}, SettleStart: time.Now()}, patience: patience, trace: t,
		woken: make(chan struct{}, 1), longTimed: map[world.RequestOf]bool{}, waited: map[world.RequestOf]wait{},
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
	if !s.Sleeping() || item.delay == 0 || s.Idle[item.RequestOf].Times < judge.MaxPolls {
		return item.due
	}
	added := item.due.Add(-item.delay)
	if delay := min(added.Sub(s.LastChange)/pollShare, maxPollDelay); delay > item.delay {
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
			consider(time.Now().Add(s.patience)) // the queue of the controller has its own timers
		case item.queue.canStart(item.Request):
			consider(s.due(item))
		}
	}
	for _, action := range s.deferred {
		consider(action.at)
	}
	return next, !next.IsZero()
}

// sleepIsOver reports whether the Sleep of the users has ended.
func (s *scheduler) sleepIsOver() bool { return s.Sleeping() && !time.Now().Before(s.SleepUntil) }

// startSettle starts the count of reconciles, and of the time that a Settle may take.
func (s *scheduler) startSettle() { s.Recent, s.SettleStart = 0, time.Now() }

// changed records a change, or that a cache has received one: a request that was idle may have work now.
func (s *scheduler) changed() {
	clear(s.Idle)
	s.LastChange = time.Now()
}

// started records the start of a reconcile.
func (s *scheduler) started(item queued) {
	s.Recent++
	if !slices.Contains(s.requested, item.RequestOf) {
		s.requested = append(s.requested, item.RequestOf)
	}
	if s.long(item) && !time.Now().Before(item.due) {
		s.waited[item.RequestOf] = wait{s.waited[item.RequestOf].times + 1, s.trace.ForeignChanges}
	}
}

// long reports whether a request is queued after a long time, or was once and waits for the rest of it.
func (s *scheduler) long(item queued) bool {
	return !item.retry && (item.delay >= longTime || item.delay > 0 && s.longTimed[item.RequestOf])
}

// finished records the end of a reconcile.
func (s *scheduler) finished(a *activity) {
	if a.Err == nil && a.Result.RequeueAfter >= longTime {
		s.longTimed[a.RequestOf] = true
	}
	switch {
	case a.Err != nil && !s.trace.MayFail || a.Panicked != nil || len(a.Failed) > 0 || a.Refused:
		delete(s.Idle, a.RequestOf) // a retry may succeed
	case a.Changes == s.trace.Changes:
		s.Idle[a.RequestOf] = s.Idle[a.RequestOf].Next(s.LastChange)
	}
}

// idleEnough reports whether no queued request is going to change anything: each one was reconciled twice without a
// change, or is due only after a long time.
func (s *scheduler) idleEnough(of processes) bool {
	if slices.ContainsFunc(s.deferred, func(a deferredAction) bool { return a.idle == nil || !a.idle() }) {
		return false
	}
	polled := time.Since(s.LastChange) >= judge.PollTime
	for item := range of.queued() {
		if !item.queue.shadow && !item.queue.canStart(item.Request) {
			continue // the controller was not started
		}
		awaited := s.long(item) && s.awaited(item.RequestOf)
		never := item.due.Sub(s.SettleStart) >= s.patience/2 && !item.retry
		if awaited || never {
			continue
		}
		if idle := s.Idle[item.RequestOf].Times; idle < 2 || !polled && idle < judge.MaxPolls {
			return false
		}
	}
	return true
}

// awaited reports whether the long timer of a request need not be awaited again.
func (s *scheduler) awaited(req world.RequestOf) bool {
	w := s.waited[req]
	return w.times >= maxWaits || w.times > 0 && w.foreignChanges == s.trace.ForeignChanges
}
