// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// advance delivers the next change to the cache, and returns false if there is none.
func (p *scheduleProcess) advance() bool {
	if p.position == len(p.world.server.history) {
		return false
	}
	change := p.world.server.history[p.position]
	p.position++
	before := p.cached[change.name]
	switch {
	case change.before == nil:
		p.world.tracef("  cache: %s is added", change.after)
		p.cached[change.name] = change.after
		p.created(change.after, false)
	case change.after == nil:
		p.world.tracef("  cache: %s is deleted", change.last)
		delete(p.cached, change.name)
		p.deleted(change.last)
	default:
		p.world.tracef("  cache: %s is updated", change.after)
		p.cached[change.name] = change.after
		p.updated(before, change.after)
	}
	return true
}

// relist replaces the content of the cache by the state at a position of the history. The objects are new copies even
// if nothing has changed.
func (p *scheduleProcess) relist(position int) {
	p.world.tracef("  cache: relisted at %d of %d", position, len(p.world.server.history))
	before, listed := p.cached, p.world.server.at(position)
	p.position, p.cached = position, map[string]subject{}
	for name, obj := range listed {
		p.cached[name] = copyOf(obj)
		p.world.mustStay(p.cached[name])
	}
	for _, name := range scheduleNames {
		switch was, is := before[name], p.cached[name]; {
		case was != nil && is != nil:
			p.updated(was, is)
		case was != nil:
			p.deleted(was)
		case is != nil:
			p.created(is, false)
		}
	}
}

// resync sends all objects of the cache again.
func (p *scheduleProcess) resync() {
	p.world.tracef("  cache: resynced")
	for _, name := range scheduleNames {
		if obj := p.cached[name]; obj != nil {
			p.updated(obj, obj)
		}
	}
}

func (p *scheduleProcess) created(obj subject, listed bool) {
	p.notify(obj, func(recorder predicate.Predicate) bool {
		return recorder.Create(event.CreateEvent{Object: obj, IsInInitialList: listed})
	})
}

func (p *scheduleProcess) updated(before, after subject) {
	p.notify(after, func(recorder predicate.Predicate) bool {
		if before.GetResourceVersion() == after.GetResourceVersion() {
			p.resynced(after.GetName())
		}
		return recorder.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	})
}

func (p *scheduleProcess) deleted(obj subject) {
	p.notify(obj, func(recorder predicate.Predicate) bool { return recorder.Delete(event.DeleteEvent{Object: obj}) })
}

// notify passes an event through all predicates before the request is queued, some time after the cache has the state.
func (p *scheduleProcess) notify(obj subject, of func(predicate.Predicate) bool) {
	p.undelivered = append(p.undelivered, func() {
		p.received(obj)
		pass := true
		for _, recorder := range p.recorders {
			pass = of(recorder) && pass
		}
		if pass {
			p.queue.add(obj.GetName(), 0)
		}
	})
}

// deliver delivers all outstanding events.
func (p *scheduleProcess) deliver() {
	for len(p.undelivered) > 0 {
		next := p.undelivered[0]
		p.undelivered = p.undelivered[1:]
		next()
	}
}
