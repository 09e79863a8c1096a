// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/objects/nilcheck"
)

// watches forwards the watch events of the API server to the caches of the process and to the actors, and delays them
// if a fault is injected. It does not know what a handler does with an event.
type watches struct {
	*scene

	processes   *processes
	conversions *conversions
	users       *users
	actors      *actors
	// forwarding is set while events are forwarded: events that result from them are forwarded in their turn.
	forwarding bool
}

// forward forwards the events of all changes since the last call. There is no process yet when objects are given.
func (w *watches) forward() {
	server := w.world.Server
	if w.forwarding || w.world.Forwarded == server.Version() {
		return
	}
	w.forwarding = true
	defer func() { w.forwarding = false }()
	if !w.world.Electing {
		w.scheduler.changed()
	}
	for events := server.Events(w.world.Forwarded); len(events) > 0; events = server.Events(w.world.Forwarded) {
		e := events[0]
		w.world.Forwarded = e.Version
		if w.world.Electing {
			w.world.Elected(e)
		} else {
			w.trace.Changed(e, w.world.IsProgram(e.Client))
			w.observe(e)
		}
		for _, p := range *w.processes {
			for _, i := range p.informers {
				shown, ok := server.In(i.kind, e)
				if !ok {
					continue
				}
				if shown, ok = i.shows(shown); ok {
					w.arrive(i, shown)
				}
			}
		}
		w.actors.changed(e)
	}
	w.conversions.report()
}

// observe shows an event to those who see all changes.
func (w *watches) observe(e memapi.Event) {
	if e.Type == watch.Added {
		w.world.Born(e)
	}
	if e.Client == phrase.User {
		w.users.changed(e.Key)
	}
	w.oracles.Changed(e)
}

var eventFaults = inject.SetAt(inject.AtEvent)

// arrive queues an event for a cache.
func (w *watches) arrive(i *informer, e memapi.Event) {
	i.coming = append(i.coming, e)
	if i.held != nil {
		return
	}
	at := i.process.site("event "+inject.EventNames[e.Type], e.Kind.Kind, w.world.Generated.Key(e.Key))
	switch fault := w.faults.at(at, eventFaults); fault {
	case "":
	case inject.Resync:
		w.trace.Watch(i.kind, "all "+e.Kind.Kind+" again", fault)
		i.resync = true
	default:
		w.users.delayed(e)
		held := &hold{fault: fault, from: e.Version, reconcile: w.trace.Reconciles}
		i.held = held
		w.trace.Watch(i.kind, inject.EventNames[e.Type]+" "+e.Kind.Kind+" "+phrase.Name(e.Key)+" is delayed", fault)
		w.scheduler.after(longLag, func() {
			if i.held == held {
				w.release(i)
			}
		})
	}
}

// release ends the delay of a cache.
func (w *watches) release(i *informer) {
	if i.held == nil {
		return
	}
	relist := i.held.fault == inject.Relist && !i.hides()
	i.held = nil
	w.trace.Watch(i.kind, i.kind.Kind+" catches up", "")
	if relist {
		w.scheduler.changed()
		i.process.deliver(i, i.relist(i.list(), w.world.Server.Version()))
	}
}

// releaseIdle ends the delays that last until everything else is idle, and reports whether it has ended one.
func (w *watches) releaseIdle() bool {
	for i := range w.processes.informers() {
		if i.held != nil && i.held.fault != inject.LagLong && i.held.fault != inject.Relist {
			w.release(i)
			return true
		}
	}
	return false
}

// reconciled ends the delays that last until the end of a reconcile of the same process.
func (w *watches) reconciled(p *Process, number int) {
	for _, i := range p.informers {
		if i.held != nil && i.held.ends(number) {
			w.release(i)
		}
	}
}

// wasRead ends the delay that lasts until a read from a cache.
func (w *watches) wasRead(c *call) {
	if i := c.process.existing(c.GVK); i != nil && i.held != nil && i.held.fault == inject.LagRead {
		w.release(i)
	}
}

// catchUp delivers the events of the process's own writes before a read from a cache, with [ReadYourWrites].
func (w *watches) catchUp(i *informer) {
	p := i.process
	if !w.machine.OwnWrites {
		return
	}
	written := p.written[w.world.Server.Shown(i.kind)]
	if i.position >= written {
		return
	}
	i.held = nil
	var changes []change
	for len(i.coming) > 0 && i.coming[0].Version <= written {
		changes = append(changes, i.next())
	}
	p.deliver(i, changes)
}

// deliverNext delivers the next event to a cache, or repeats all its objects, and reports whether it has.
func (w *watches) deliverNext() bool {
	for i := range w.processes.informers() {
		p := i.process
		if p.delivering || p.paused {
			continue
		}
		if i.resync {
			i.resync = false
			var changes []change
			for _, obj := range i.objects {
				changes = append(changes, change{before: obj, after: obj})
			}
			p.deliver(i, changes)
			return true
		}
		if i.due() {
			w.scheduler.changed()
			w.trace.Arrive(i.kind, i.coming[0])
			p.arriving.Store(i.coming[0].Version)
			p.deliver(i, []change{i.next()})
			if !p.delivering {
				p.arriving.Store(0)
			}
			return true
		}
	}
	return false
}

// deliver adds the requests for changes of a cache to the queue, and calls its handlers.
func (p *Process) deliver(i *informer, changes []change) {
	if len(changes) == 0 {
		return
	}
	for n := range changes {
		c := &changes[n]
		c.dropped = i.drops(*c)
		for _, obj := range []client.Object{c.before, c.after} {
			if nilcheck.IsNil(obj) || c.dropped {
				continue
			}
			for _, requests := range i.plain {
				for _, req := range requests(obj) {
					p.direct.Add(req)
				}
			}
		}
	}
	if len(i.mappers) == 0 && len(i.handlers) == 0 {
		return
	}
	p.inDelivery(func() {
		for _, c := range changes {
			p.notify(i, c)
		}
	})
}

// inDelivery calls handlers, one delivery at a time. Handlers may make calls.
func (p *Process) inDelivery(notify func()) {
	if p.delivering {
		p.deliveries = append(p.deliveries, notify)
		return
	}
	p.delivering = true
	if p.handlers == nil {
		p.handlers = p.newWorker()
	}
	p.handlers <- func() {
		defer func() { // also if the process dies during the delivery
			p.mu.Lock()
			p.delivered = true
			p.mu.Unlock()
			p.scheduler.wake()
		}()
		notify()
	}
}

// endDelivery ends a delivery whose handlers have returned, and starts the next one. It reports whether it has started
// one.
func (p *Process) endDelivery() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.delivered {
		return false
	}
	p.delivering, p.delivered = false, false
	p.arriving.Store(0)
	if len(p.deliveries) == 0 {
		return false
	}
	next := p.deliveries[0]
	p.deliveries = p.deliveries[1:]
	p.inDelivery(next)
	return true
}

// notify calls the handlers and mappers of a cache with a change. They may make calls.
func (p *Process) notify(i *informer, c change) {
	for _, obj := range []client.Object{c.before, c.after} {
		if nilcheck.IsNil(obj) || c.dropped {
			continue
		}
		for _, requests := range i.mappers {
			for _, req := range requests(p.ctx, i.share(obj)) {
				p.direct.Add(req)
			}
		}
	}
	for _, h := range i.handlers {
		h.tell(c)
	}
}
