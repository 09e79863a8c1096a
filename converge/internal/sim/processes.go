// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/world"
)

// processes has one process of each program that was started, in the order of the programs. Where only one of them can
// go on, the first one does.
type processes []*Process

// set adds a process, or replaces the one of the same program.
func (ps *processes) set(p *Process) {
	if p.program.Index < len(*ps) {
		(*ps)[p.program.Index] = p
		return
	}
	*ps = append(*ps, p)
}

// only returns the present process of the program of a process.
func (ps processes) only(p *Process) processes { return ps[p.program.Index : p.program.Index+1] }

// has reports whether a process has not been replaced.
func (ps processes) has(p *Process) bool { return slices.Contains(ps, p) }

// follow reports whether one of the processes has replaced another one.
func (ps processes) follow(old *Process) bool {
	return slices.ContainsFunc(ps, func(p *Process) bool { return p.program.Index == old.program.Index && p != old })
}

// dead returns the first process that has ended, or nil.
func (ps processes) dead() *Process {
	for _, p := range ps {
		if p.dead.Load() {
			return p
		}
	}
	return nil
}

// nextTurn tells the queues that the next turn of the loop begins.
func (ps processes) nextTurn() {
	for _, p := range ps {
		p.queue.turn.Add(1)
	}
}

// endDelivery ends deliveries whose handlers have returned. It reports whether it has started another one.
func (ps processes) endDelivery() bool {
	return slices.ContainsFunc(ps, (*Process).endDelivery)
}

// concurrent reports whether several reconciles can run at once.
func (ps processes) concurrent() bool { return len(ps) > 1 || ps[0].manager != nil }

// busy reports whether a reconcile or a handler is running.
func (ps processes) busy() bool { return slices.ContainsFunc(ps, (*Process).busy) }

// empty reports whether no request is queued.
func (ps processes) empty() bool {
	return !slices.ContainsFunc(ps, func(p *Process) bool { return !p.queue.empty() })
}

// done reports whether neither a request nor a handler of a manager can lead to another reconcile.
func (ps processes) done() bool {
	return ps.empty() && !slices.ContainsFunc(ps, func(p *Process) bool { return p.manager != nil })
}

// haveRunnables reports whether runnables other than controllers were added to a manager.
func (ps processes) haveRunnables() bool {
	return slices.ContainsFunc(ps, func(p *Process) bool { return p.manager != nil && p.manager.busy })
}

var _ judge.Queues = (*processes)(nil)

// Running returns the first running reconcile, or nil.
func (ps processes) Running() *world.Reconcile {
	for _, p := range ps {
		if len(p.active) > 0 {
			return &p.active[0].Reconcile
		}
	}
	return nil
}

// FirstQueued returns the first queued request that matches.
func (ps processes) FirstQueued(matches func(world.RequestOf) bool) (world.RequestOf, bool) {
	for item := range ps.queued() {
		if matches(item.RequestOf) {
			return item.RequestOf, true
		}
	}
	return world.RequestOf{}, false
}

// IsQueued reports whether a request is queued.
func (ps processes) IsQueued(req world.RequestOf) bool { return ps[req.Program].queue.has(req) }

// Quiet reports whether no request is queued, and there are no runnables that could add one.
func (ps processes) Quiet() bool { return ps.empty() && !ps.haveRunnables() }

// FirstHandedOut returns the first object that matches of those that caches have handed out without a copy.
func (ps processes) FirstHandedOut(matches func(judge.Shared) bool) (schema.GroupVersionKind, judge.Shared, bool) {
	for _, p := range ps {
		for _, i := range p.informers {
			if at := slices.IndexFunc(i.shared, matches); at >= 0 {
				return i.kind, i.shared[at], true
			}
		}
	}
	return schema.GroupVersionKind{}, judge.Shared{}, false
}

// isActive reports whether a reconcile is running.
func (ps processes) isActive(name string) bool {
	return slices.ContainsFunc(ps, func(p *Process) bool { return p.activity(name) != nil })
}

// informers yields the caches.
func (ps processes) informers() iter.Seq[*informer] {
	return func(yield func(*informer) bool) {
		for _, p := range ps {
			for _, i := range p.informers {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// last describes the processes for further runs.
func (ps processes) last() []judge.LastProcess {
	described := make([]judge.LastProcess, len(ps))
	for n, p := range ps {
		described[n].Number, described[n].Read = p.number, make([]schema.GroupVersionKind, 0, len(p.informers))
		for _, i := range p.informers {
			described[n].Read = append(described[n].Read, i.kind)
		}
	}
	return described
}

// webhooks yields the webhooks, including the webhooks of processes that have ended.
func (ps processes) webhooks() iter.Seq[Webhook] {
	return func(yield func(Webhook) bool) {
		for _, p := range ps {
			for _, hook := range p.webhooks {
				if !yield(hook) {
					return
				}
			}
		}
	}
}

// queued yields the queued requests.
func (ps processes) queued() iter.Seq[queued] {
	return func(yield func(queued) bool) {
		for _, p := range ps {
			for item := range p.queue.all() {
				if !yield(item) {
					return
				}
			}
		}
	}
}

// take removes and returns the request that is the next one to be reconciled: of the first one of each process, the one
// that is due first.
func (ps processes) take(due func(queued) time.Time) (queued, bool) {
	if len(ps) == 1 {
		return ps[0].queue.take(due)
	}
	var first *Process
	var at time.Time
	for _, p := range ps {
		if item, ok := p.queue.first(due); ok && (first == nil || item.due.Before(at)) {
			first, at = p, item.due
		}
	}
	if first == nil {
		return queued{}, false
	}
	return first.queue.take(due)
}

// nextCall removes and returns the next call to be served, or nil. Calls that another reconcile overtakes are served if
// no other call waits.
func (ps processes) nextCall() *call {
	for _, overtaken := range []bool{false, true} {
		for _, p := range ps {
			if c := p.next(overtaken); c != nil {
				return c
			}
		}
	}
	return nil
}

// rival returns the name of another running reconcile that waits for a response too, or "": one of the same process, or
// else one of another process.
func (ps processes) rival(c *call) string {
	if c.process.activity(c.Who) == nil {
		return ""
	}
	if name := c.process.waiting(c.Who); name != "" {
		return name
	}
	for _, p := range ps {
		if p == c.process {
			continue
		}
		if name := p.waiting(c.Who); name != "" {
			return name
		}
	}
	return ""
}

// restartWhenIdle ends the processes that are to restart when everything is idle, and reports whether there are any.
func (ps processes) restartWhenIdle() bool {
	restarted := false
	for _, p := range ps {
		if p.restartWhenIdle {
			p.die()
			restarted = true
		}
	}
	return restarted
}

// site returns the site of an action of a process.
func (p *Process) site(act, kind string, key types.NamespacedName) inject.Site {
	return inject.Site{Program: p.program.Name, Act: act, Kind: kind, Key: key}
}

// upgrade ends the processes whose version does not have the number.
func (ps processes) upgrade(number int) {
	for _, p := range ps {
		if p.number < number {
			p.die()
		}
	}
}
