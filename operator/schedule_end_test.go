// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"maps"
	"slices"
)

// settle runs the world until no work is left.
func (w *scheduleWorld) settle() {
	w.quiet = true
	for range 200 {
		w.catchUp()
		if w.process.position < len(w.server.history) {
			continue
		}
		if !w.process.queue.wait() {
			return
		}
	}
	w.must(false, converges, "it never comes to rest: %v is queued", w.process.queue.at)
}

// finish checks the end states: after all work is done, after a resync for exhausted calls, and after users have
// deleted everything.
func (w *scheduleWorld) finish() {
	w.tracef("all is quiet")
	w.settle()
	w.checkEnd(true)
	w.tracef("a resync")
	w.process.resync()
	w.settle()
	w.checkEnd(false)
	w.tracef("everything is deleted")
	for _, name := range slices.Sorted(maps.Keys(w.server.objects)) {
		w.server.write(name, func(obj subject) {
			obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == foreignFinalizer }))
		})
		w.server.delete(name)
	}
	w.settle()
	w.checkEnd(false)
	w.must(len(w.server.objects) == 0, converges, "%d objects are left", len(w.server.objects))
	for _, p := range w.pristine {
		w.must(same(p.held, p.copied), cacheIsKept, "%s instead of %s", p.held, p.copied)
	}
}

// checkEnd checks that all handlers have handled the last state. Exhausted calls may wait for the resync.
func (w *scheduleWorld) checkEnd(mayBeExhausted bool) {
	p := w.process
	for handler, edge := range p.edges {
		for _, name := range scheduleNames {
			m, obj := p.memory(handler, name), w.server.objects[name]
			if m.exhausted && mayBeExhausted && m.waiting != nil {
				continue
			}
			w.must(m.waiting == nil || m.isOver(obj), nothingLeft, "handler %d waits for %s", handler, name)
			if obj == nil {
				w.must(m.known == nil, converges, "handler %d did not receive the deletion of %s", handler, m.known)
				continue
			}
			w.checkHandled(m, obj, mayBeExhausted)
		}
		w.must(
			edge.ledger.len() == len(w.server.objects), nothingLeft, "%d records for %d objects", edge.ledger.len(),
			len(w.server.objects),
		)
		for key, r := range edge.ledger.records {
			// An intent of a resource that is being deleted before its first call stays recorded until the resource no
			// longer exists.
			nothing := r.pending == nil || r.known == nil && r.pending.attempt == 0 ||
				p.memory(handler, key.Name).isOver(w.server.objects[key.Name])
			w.must(
				!r.busy && r.deleted == nil &&
					(nothing || mayBeExhausted && r.pending.exhausted), nothingLeft, "record %s: %+v", key,
				*r,
			)
		}
	}
}

func (w *scheduleWorld) checkHandled(m *memory, obj subject, mayBeExhausted bool) {
	ours := w.kind.ours(m.handler)
	has := func(f string) bool { return slices.Contains(obj.GetFinalizers(), f) }
	switch {
	case isDeleting(obj) && len(ours) > 0:
		w.must(!slices.ContainsFunc(ours, has), converges, "handler %d still keeps %s", m.handler, obj)
	case m.isOver(obj):
	case len(ours) > 0:
		w.must(has(ours[0]) && (len(ours) == 1 || !has(ours[1])), converges, "handler %d does not keep %s", m.handler, obj)
		w.must(m.handled != nil && m.handled.GetUID() == obj.GetUID() && m.handled.GetGeneration() == obj.GetGeneration(),
			converges,
			"handler %d has handled %s last, not %s", m.handler, m.handled, obj)
		if mark, ok := obj.(*marked); ok {
			w.must(mark.Status.ObservedGeneration == obj.GetGeneration() && (mayBeExhausted || len(mark.Status.Conditions) == 0),
				converges,
				"the status is not right: %s %v", obj, mark.Status)
		}
	default:
		w.must(m.handled != nil && m.handled.GetUID() == obj.GetUID() &&
			m.handled.GetResourceVersion() == obj.GetResourceVersion(),
			converges,
			"handler %d has handled %s last, not %s", m.handler, m.handled, obj)
	}
}
