// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/internal/guard"
)

// The checks. Every violation names one.
const (
	oneCall      = "one call at a time for an object"
	neverOlder   = "never an object older than one handled"
	neverStale   = "never an object older than what the process has written"
	deletedOnce  = "a deletion is delivered once"
	deletedOnly  = "a deletion is delivered only of what is being deleted, or is gone"
	deletedFirst = "the finalizer stays until the deletion is handled"
	lastHandled  = "previous is what was last handled"
	oldUIDFirst  = "the deletion of the old before anything of the new"
	createdFirst = "created before anything else"
	markCounts   = "resynced only what is marked as handled"
	retriesWait  = "a waiting retry is not disturbed"
	changesCount = "what waits for another call only does not wait when it has changed"
	quietAfter   = "exhausted stays quiet until something changes"
	timerIsSet   = "a waiting retry has a timer"
	attemptsAdd  = "attempts are counted until something changes"
	stateCarries = "state goes from attempt to attempt"
	cacheIsKept  = "objects of the cache are not changed"
	converges    = "in the end the last state is handled"
	nothingLeft  = "in the end nothing is pending, and nothing is remembered of what is gone"
)

type memoryKey struct {
	handler int
	name    string
}

// memory is what one handler was told in one process about what has one name.
type memory struct {
	world   *scheduleWorld
	process *scheduleProcess
	handler int

	busy bool
	// handled is what the handler was last called with with success, and known what it was last called with at all. Both
	// are nil after a deletion.
	handled, known subject
	deleted        map[types.UID]bool
	// told is the last version of what is known that an event was about.
	told   int
	newest types.UID

	// waiting is the call that did not succeed, or is to be repeated.
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
	// gone is true for the deletion of what is not there any more.
	gone bool
	// polls is true when it was a success that asks for another call.
	polls bool
}

// life is what a handler was told about an object in all processes.
type life struct {
	handled, deleted bool
	// kept is the first process that has put the finalizer on the object.
	kept int
	// former is true when the object came with the former finalizer.
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

// tell notes an event about what handlers know.
func (p *scheduleProcess) tell(obj subject) {
	for handler := range p.edges {
		if m := p.memory(handler, obj.GetName()); m.known != nil && m.known.GetUID() == obj.GetUID() {
			m.told = max(m.told, versionOf(obj))
		}
	}
}

// resynced notes a resync of the cache.
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
	call.gone = call.action == ReconcileActionDeleted && (found == nil || found.GetUID() != uid)
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
	// One handler does not see at once that another one before it has marked the status.
	written := m.process.writes[uid]
	must(call.gone || versionOf(obj) >= written.version ||
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
		m.told = 0
	}
	m.known = obj
}

func (m *memory) checkAction(call *handlerCall) {
	must, obj := m.world.must, call.object
	first := m.handled == nil
	switch call.action {
	case ReconcileActionCreated:
		// What was created and is to be called again is called for the same.
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
			!call.gone || m.known != nil && m.known.GetUID() == obj.GetUID(), createdFirst,
			"deleted: %s, of which the handler has never heard", obj,
		)
		must(!call.gone || versionOf(obj) >= versionOf(m.known), neverOlder, "deleted: %s after %s", obj, m.known)
		must(!call.gone || versionOf(obj) >= m.told, neverOlder, "deleted: %s after an event of %d", obj, m.told)
	default:
		must(false, createdFirst, "%s of %s", call.action, obj)
	}
}

// wasHandled is true when the mark on an object can only be there because an earlier process has handled it, as far as
// the mark tells.
func (m *memory) wasHandled(obj subject) bool {
	l := m.world.life(m.handler, obj.GetUID())
	if _, ok := obj.(*marked); ok && len(m.process.edges) > 1 {
		return l.handled || l.kept > 0
	} else if ok || m.world.kind.inProgress != "" {
		return l.handled
	}
	return l.former || l.kept > 0 && l.kept < m.process.number
}

// checkWaiting checks what is carried from attempt to attempt, and forgets it when the object has changed.
func (m *memory) checkWaiting(call *handlerCall) {
	must, obj := m.world.must, call.object
	replaced := false
	if was := m.waiting; was != nil {
		stays := was.object.GetUID() == obj.GetUID() && was.object.GetGeneration() == obj.GetGeneration()
		// What waits for nothing but another call has time for all changes.
		polls := was.polls && (versionOf(was.object) != versionOf(obj) && len(m.world.kind.ours(m.handler)) == 0)
		replaced = !stays || polls || isDeleting(was.object) != isDeleting(obj) || call.action == ReconcileActionDeleted &&
			was.action != ReconcileActionDeleted
		if !stays {
			m.state = nil
		}
		must(replaced || !m.exhausted || m.resynced || call.gone, quietAfter, "%s of %s", call.action, obj)
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

// failed notes a failure. Unless the retry policy is asked, it is up to the rate limiter.
func (m *memory) failed(call *handlerCall, state map[string]any) {
	m.busy, m.waiting, m.due, m.state = false, call, time.Time{}, state
	if !m.world.kind.requests {
		m.state = nil
	}
	m.attempts++
}

// givesUp notes that there is no further attempt until something changes. What is gone does not change any more.
func (m *memory) givesUp(call *handlerCall) {
	m.exhausted = true
	if call.gone {
		m.succeeded(call)
	}
}

// asked notes what the retry policy has said.
func (m *memory) asked(attempt int, retry bool, after time.Duration) {
	m.world.must(
		attempt == m.attempts-1, attemptsAdd, "the policy is asked about attempt %d instead of %d", attempt, m.attempts-1,
	)
	if m.due = time.Now().Add(after); !retry {
		m.world.count("exhausted retries")
		m.givesUp(m.waiting)
	}
}

// repeats notes that the handler asks to be called again. For a reconciler that is a success, unless the object is
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

// checkTimers checks that nothing that waits is forgotten, after a request that did not fail.
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
		// A request may be put off until the cache has seen what was written, and times count from its end.
		latest := time.Now().Add(500 * time.Millisecond)
		if due := m.due.Add(took); due.After(latest) {
			latest = due
		}
		p.world.must(queued && !at.After(latest), timerIsSet, "%s is due %s, and queued for %s (%t)", name, m.due, at, queued)
	}
}

// awaits is true when there will be an event, and with it a request.
func (p *scheduleProcess) awaits(name string) bool {
	cached, stored := p.cached[name], p.world.server.objects[name]
	return len(p.undelivered) > 0 || (cached == nil) != (stored == nil) || cached != nil &&
		cached.GetResourceVersion() != stored.GetResourceVersion()
}

// isOver is true for an object that is going without the handler: it is told when it has gone, if it knows of it.
func (m *memory) isOver(obj subject) bool {
	return obj != nil && isDeleting(obj) && !m.keeps(obj) && (m.handled == nil || m.world.kind.handlers[m.handler] != "")
}

func (m *memory) keeps(obj subject) bool {
	ours := m.world.kind.ours(m.handler)
	return slices.ContainsFunc(obj.GetFinalizers(), func(f string) bool { return slices.Contains(ours, f) })
}

// checkCleared checks that no finalizer is cleared before the deletion was handled, and notes who puts one on.
func (w *scheduleWorld) checkCleared(before, after subject) {
	for handler := range w.kind.handlers {
		ours := w.kind.ours(handler)
		has := func(obj subject) bool {
			return slices.ContainsFunc(obj.GetFinalizers(), func(f string) bool { return slices.Contains(ours, f) })
		}
		l := w.life(handler, before.GetUID())
		w.must(
			!has(before) || has(after) || l.deleted, deletedFirst, "handler %d was not told of the deletion of %s", handler,
			before,
		)
		if has(after) && l.kept == 0 {
			l.kept = w.process.number
		}
	}
}

// violation is the panic by which a schedule ends that violates a check.
type violation struct{ check, text string }

func (v violation) Error() string { return v.check + ": " + v.text }

func (w *scheduleWorld) must(ok bool, check, format string, args ...any) {
	if !ok {
		panic(violation{check, fmt.Sprintf(format, described(args)...)})
	}
}
