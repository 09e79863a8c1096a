// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/internal/engine/guard"
)

// The checks. Every violation names one of them.
const (
	oneCall      = "one call at a time for an object"
	neverOlder   = "never an object older than one handled"
	neverStale   = "never an object older than what the process has written"
	deletedOnce  = "a deletion is delivered once"
	deletedOnly  = "a deletion is delivered only if the object is being deleted or no longer exists"
	deletedFirst = "the finalizer stays until the deletion is handled"
	lastHandled  = "previous is what was last handled"
	oldUIDFirst  = "the deletion of the old object comes before any call for the new one"
	createdFirst = "created before anything else"
	markCounts   = "only an object with the mark is resynced"
	retriesWait  = "a waiting retry is not disturbed"
	changesCount = "a requested call does not delay a change"
	quietAfter   = "exhausted stays quiet until something changes"
	timerIsSet   = "a waiting retry has a timer"
	attemptsAdd  = "attempts are counted until something changes"
	stateCarries = "state goes from attempt to attempt"
	cacheIsKept  = "objects of the cache are not changed"
	converges    = "at the end the last state is handled"
	nothingLeft  = "at the end no call is pending, and deleted objects have no records"
)

type memoryKey struct {
	handler int
	name    string
}

// memory is the record of calls of one handler in one process for one name.
type memory struct {
	world   *scheduleWorld
	process *scheduleProcess
	handler int

	busy bool
	// handled is the object of the last successful call, and known the object of the last call. Both are nil after a
	// deletion.
	handled, known subject
	deleted        map[types.UID]bool
	// seenVersion is the latest version of known in an event.
	seenVersion int
	newest      types.UID

	// waiting is the call that failed or must be repeated.
	waiting   *handlerCall
	due       time.Time
	exhausted bool
	resynced  bool
	attempts  int
	state     map[string]any
	created   map[types.UID]bool
}

// handlerCall is a call of a handler.
type handlerCall struct {
	action           ReconcileAction
	object, previous subject
	edge             Edge
	state            map[string]any
	// absent reports whether the deleted object no longer exists.
	absent bool
	// polls reports whether the call succeeded and asked for another call.
	polls bool
}

// life is the record of calls of a handler for one object in all processes.
type life struct {
	handled, deleted bool
	// kept is the first process that has set the finalizer of the object.
	kept int
	// former reports whether the object was created with the former finalizer.
	former bool
}

type lifeKey struct {
	handler int
	uid     types.UID
}

func (w *scheduleWorld) life(handler int, uid types.UID) *life {
	key := lifeKey{handler, uid}
	if w.lives[key] == nil {
		w.lives[key] = &life{}
	}
	return w.lives[key]
}

func (p *scheduleProcess) memory(handler int, name string) *memory {
	key := memoryKey{handler, name}
	if p.memories[key] == nil {
		p.memories[key] = &memory{
			world: p.world, process: p, handler: handler, deleted: map[types.UID]bool{}, created: map[types.UID]bool{},
		}
	}
	return p.memories[key]
}

// received records an event for the handlers that know the object.
func (p *scheduleProcess) received(obj subject) {
	for handler := range p.edges {
		if m := p.memory(handler, obj.GetName()); m.known != nil && m.known.GetUID() == obj.GetUID() {
			m.seenVersion = max(m.seenVersion, versionOf(obj))
		}
	}
}

// resynced records a resync of the cache.
func (p *scheduleProcess) resynced(name string) {
	for handler := range p.edges {
		p.memory(handler, name).resynced = true
	}
}

// begin checks a call.
func (m *memory) begin(call *handlerCall) {
	must := m.world.must
	obj, uid := call.object, call.object.GetUID()
	found := m.process.found[obj.GetName()]
	call.absent = call.action == ReconcileActionDeleted && (found == nil || found.GetUID() != uid)
	stored := m.world.server.objects[obj.GetName()]
	isGone := stored == nil || stored.GetUID() != uid
	must(
		call.action != ReconcileActionDeleted || isGone || isDeleting(obj) && m.keeps(obj), deletedOnly, "deleted: %s", obj,
	)
	must(!m.busy, oneCall, "handler %d is called with %s", m.handler, obj)
	m.busy = true
	must(
		m.handled == nil || m.handled.GetUID() != uid || versionOf(obj) >= versionOf(m.handled), neverOlder, "%s after %s",
		obj, m.handled,
	)
	must(uid >= m.newest, neverOlder, "%s after %s", uid, m.newest)
	m.newest = uid
	// A handler does not see at once that an earlier handler has marked the status.
	written := m.process.writes[uid]
	must(call.absent || versionOf(obj) >= written.version ||
		written.request == m.process.requests[obj.GetName()] || time.Since(written.at) >= guard.DefaultTimeout,
		neverStale, "%s after a write of %d", obj, written.version)
	must(!m.deleted[uid], deletedOnce, "%s of %s, whose deletion was delivered", call.action, obj)
	must(call.action == ReconcileActionDeleted || m.known == nil || m.known.GetUID() == uid,
		oldUIDFirst, "%s of %s while %s is known", call.action, obj, m.known)
	if call.previous != nil {
		must(
			m.handled != nil && sameVersion(call.previous, m.handled), lastHandled, "%s instead of %s", call.previous, m.handled,
		)
	}
	m.checkAction(call)
	m.checkWaiting(call)
	if m.known == nil {
		m.seenVersion = 0
	}
	m.known = obj
}

func (m *memory) checkAction(call *handlerCall) {
	must, obj := m.world.must, call.object
	first := m.handled == nil
	switch call.action {
	case ReconcileActionCreated:
		// A call after a creation that asked to be called again is still a creation.
		again := m.waiting != nil && m.waiting.action == ReconcileActionCreated && m.waiting.object.GetUID() == obj.GetUID()
		must(first || again, createdFirst, "created again: %s", obj)
		if mark, ok := obj.(*marked); ok && len(m.process.edges) == 1 && !m.created[obj.GetUID()] {
			must(mark.Status.ObservedGeneration == 0, markCounts, "created: %s", obj)
		}
		m.created[obj.GetUID()] = true
	case ReconcileActionUpdated:
		must(!first, createdFirst, "updated: %s", obj)
		must(call.previous != nil, lastHandled, "there is none for %s", obj)
	case ReconcileActionResynced:
		must(!first || m.wasHandled(obj), markCounts, "resynced: %s", obj)
	case ReconcileActionDeleted:
		must(
			!call.absent || m.known != nil && m.known.GetUID() == obj.GetUID(), createdFirst,
			"deleted: %s, which the handler never received", obj,
		)
		must(!call.absent || versionOf(obj) >= versionOf(m.known), neverOlder, "deleted: %s after %s", obj, m.known)
		must(!call.absent || versionOf(obj) >= m.seenVersion,
			neverOlder, "deleted: %s after an event of %d", obj, m.seenVersion)
	default:
		must(false, createdFirst, "%s of %s", call.action, obj)
	}
}

// wasHandled reports whether the mark on an object proves that an earlier process has handled it.
func (m *memory) wasHandled(obj subject) bool {
	l := m.world.life(m.handler, obj.GetUID())
	if _, ok := obj.(*marked); ok && len(m.process.edges) > 1 {
		return l.handled || l.kept > 0
	} else if ok || m.world.kind.inProgress != "" {
		return l.handled
	}
	return l.former || l.kept > 0 && l.kept < m.process.number
}

// checkWaiting checks the state that is carried between attempts, and drops it if the object has changed.
func (m *memory) checkWaiting(call *handlerCall) {
	must, obj := m.world.must, call.object
	replaced := false
	if was := m.waiting; was != nil {
		stays := was.object.GetUID() == obj.GetUID() && was.object.GetGeneration() == obj.GetGeneration()
		// A requested call does not delay changes.
		polls := was.polls && (versionOf(was.object) != versionOf(obj) && len(m.world.kind.ours(m.handler)) == 0)
		replaced = !stays || polls || isDeleting(was.object) != isDeleting(obj) || call.action == ReconcileActionDeleted &&
			was.action != ReconcileActionDeleted
		if !stays {
			m.state = nil
		}
		must(replaced || !m.exhausted || m.resynced || call.absent, quietAfter, "%s of %s", call.action, obj)
		must(
			replaced || m.exhausted || !m.due.After(time.Now()), retriesWait, "%s of %s is due in %s", call.action, obj,
			time.Until(m.due),
		)
		if replaced || m.exhausted {
			m.attempts = 0
		}
	}
	must(
		call.edge.Attempt == m.attempts, attemptsAdd, "attempt %d of %s of %s instead of %d", call.edge.Attempt, call.action,
		obj, m.attempts,
	)
	if m.world.kind.requests {
		must(maps.Equal(call.state, m.state), stateCarries, "%v instead of %v", call.state, m.state)
	}
	m.waiting, m.exhausted, m.resynced = nil, false, false
}

func (m *memory) succeeded(call *handlerCall) {
	m.busy, m.waiting, m.attempts, m.state = false, nil, 0, nil
	uid := call.object.GetUID()
	l := m.world.life(m.handler, uid)
	if call.action == ReconcileActionDeleted {
		m.handled, m.known = nil, nil
		m.deleted[uid], l.deleted = true, true
		return
	}
	m.handled, l.handled = call.object, true
}

// failed records a failure. Unless a retry policy is called, the rate limiter schedules the retry.
func (m *memory) failed(call *handlerCall, state map[string]any) {
	m.busy, m.waiting, m.due, m.state = false, call, time.Time{}, state
	if !m.world.kind.requests {
		m.state = nil
	}
	m.attempts++
}

// givesUp records that no attempt follows until a change. An object that no longer exists cannot change.
func (m *memory) givesUp(call *handlerCall) {
	m.exhausted = true
	if call.absent {
		m.succeeded(call)
	}
}

// asked records the decision of the retry policy.
func (m *memory) asked(attempt int, retry bool, after time.Duration) {
	m.world.must(
		attempt == m.attempts-1, attemptsAdd, "the policy is asked about attempt %d instead of %d", attempt, m.attempts-1,
	)
	if m.due = time.Now().Add(after); !retry {
		m.world.count("exhausted retries")
		m.givesUp(m.waiting)
	}
}

// repeats records that the handler asks to be called again. For a reconciler this is a success, unless the object is
// being deleted.
func (m *memory) repeats(call *handlerCall, state map[string]any, after time.Duration) {
	attempts := m.attempts
	if m.world.kind.requests {
		attempts = 0
		if call.action != ReconcileActionDeleted {
			m.succeeded(call)
			call.polls = true
		}
	}
	m.failed(call, state)
	m.attempts, m.due = attempts, time.Now().Add(after)
	if state == nil {
		m.state = call.state
	}
}

// checkTimers checks, after a request that did not fail, that every waiting call has a timer.
func (p *scheduleProcess) checkTimers(name string, took time.Duration) {
	for handler := range p.edges {
		m, found := p.memory(handler, name), p.found[name]
		if m.waiting != nil && m.waiting.polls && found != nil && p.world.kind.handlers[handler] == "" {
			p.world.must(
				versionOf(found) <= versionOf(m.waiting.object), changesCount, "%s waits, and is %s by now", m.waiting.object,
				found,
			)
		}
		if m.waiting == nil || m.exhausted || m.isOver(p.cached[name]) || p.awaits(name) {
			continue
		}
		at, queued := p.queue.at[name]
		// A request may be deferred until the cache has the written state, and delays start at its end.
		latest := time.Now().Add(500 * time.Millisecond)
		if due := m.due.Add(took); due.After(latest) {
			latest = due
		}
		p.world.must(queued && !at.After(latest), timerIsSet, "%s is due %s, and queued for %s (%t)", name, m.due, at, queued)
	}
}

// awaits reports whether an event, and with it a request, will follow.
func (p *scheduleProcess) awaits(name string) bool {
	cached, stored := p.cached[name], p.world.server.objects[name]
	return len(p.undelivered) > 0 || (cached == nil) != (stored == nil) || cached != nil &&
		cached.GetResourceVersion() != stored.GetResourceVersion()
}

// isOver reports whether an object is being deleted without the handler's finalizer: a handler that knows it is called
// when it no longer exists.
func (m *memory) isOver(obj subject) bool {
	return obj != nil && isDeleting(obj) && !m.keeps(obj) && (m.handled == nil || m.world.kind.handlers[m.handler] != "")
}

func (m *memory) keeps(obj subject) bool {
	ours := m.world.kind.ours(m.handler)
	return slices.ContainsFunc(obj.GetFinalizers(), func(f string) bool { return slices.Contains(ours, f) })
}

// checkCleared checks that no finalizer is removed before the deletion was handled, and records which process adds
// one.
func (w *scheduleWorld) checkCleared(before, after subject) {
	for handler := range w.kind.handlers {
		ours := w.kind.ours(handler)
		has := func(obj subject) bool {
			return slices.ContainsFunc(obj.GetFinalizers(), func(f string) bool { return slices.Contains(ours, f) })
		}
		l := w.life(handler, before.GetUID())
		w.must(
			!has(before) || has(after) || l.deleted, deletedFirst, "handler %d did not receive the deletion of %s", handler,
			before,
		)
		if has(after) && l.kept == 0 {
			l.kept = w.process.number
		}
	}
}

// violation is the panic value of a schedule that violates a check.
type violation struct{ check, text string }

func (v violation) Error() string { return v.check + ": " + v.text }

func (w *scheduleWorld) must(ok bool, check, format string, args ...any) {
	if !ok {
		panic(violation{check, fmt.Sprintf(format, described(args)...)})
	}
}
