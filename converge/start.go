// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/calledby"
)

// start starts a process of a program, whose caches start with the current state.
func (r *run) start(program *program, number int, stale ...staleStart) {
	p := &process{
		run: r, program: program, number: number, written: map[schema.GroupVersionKind]int64{},
		handedVersions: map[client.Object]string{}, stale: stale, restarting: number > 1 && program.setup != nil,
	}
	p.ctx, p.cancel = context.WithCancel(calledby.Controller())
	r.processes.set(p)
	r.faults.processStarted(number)
	r.trace.processStarted(p)
	base := r.world.server.Client(p.program.client)
	cached := newProcessClient(base, p, false)
	p.env = Env{
		Client: cached, APIReader: newProcessClient(base, p, true), Scheme: r.plan.Scheme,
		Recorder: &record.FakeRecorder{}, Cloud: Cloud{process: p}, process: p,
	}
	p.direct = &controllerQueue{process: p, limiter: newRateLimiter()}
	m := newManager(p, cached)
	p.env.Cache, p.env.Manager = m.cache, m
	if r.plan.Consistency == Gate {
		m.Client = p.guarded(cached, p.env.APIReader, m.cache)
		p.env.Client = m.Client
	}
	for _, kind := range r.plan.of(number).read[p.program] {
		p.informer(kind)
	}
	if p.program.setup != nil {
		p.manager = m
		r.startManager(m)
		return
	}
	r.startReconciler(p, m)
}

// startReconciler starts the reconciler of a scenario with New.
func (r *run) startReconciler(p *process, m *processManager) {
	if p.program.indexes != nil {
		if err := p.program.indexes(m.cache); err != nil {
			r.violate(scenarioFailure("Indexes: " + err.Error()))
			return
		}
	}
	// Constructors may use the client.
	mappers := make([]handler.MapFunc, len(p.program.watches))
	built := make(chan struct{})
	go func() {
		defer close(built)
		p.reconciler = p.program.build(p.env)
		for i, w := range p.program.watches {
			if mappers[i] = w.Requests; w.NewRequests != nil {
				mappers[i] = w.NewRequests(p.env)
			}
		}
		r.wake()
	}()
	r.serveUntil(p, built)
	if p.dead.Load() {
		return // it has crashed during the start
	}
	if p.reconciler = r.consistent(p, p.reconciler); p.reconciler == nil {
		r.violate(scenarioFailure("New returned nil"))
		return
	}
	r.startWebhooks(m)
	p.watch(r.running.primary, func(obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	})
	for _, kind := range p.program.owns {
		p.watch(kind, func(obj client.Object) []reconcile.Request {
			if key, ok := r.running.ownerOf(r.running.primary, obj); ok {
				return []reconcile.Request{{NamespacedName: key}}
			}
			return nil
		})
	}
	for i, w := range p.program.watches {
		if mappers[i] == nil {
			r.violate(scenarioFailure(fmt.Sprintf("Watches[%d].NewRequests returned nil", i)))
			return
		}
		p.informer(w.kind).mappers = append(p.informer(w.kind).mappers, mappers[i])
	}
	for _, i := range p.informers {
		i.filters = p.program.filtersOf(i.kind)
		var initial []change
		for _, obj := range i.objects {
			initial = append(initial, change{after: obj, initial: true})
		}
		p.deliver(i, initial)
	}
}

// serveUntil serves calls of a process until a channel is closed.
func (r *run) serveUntil(p *process, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-r.scheduler.woken:
			r.gateway.serveNext(r.processes.only(p))
		}
	}
}

// watch adds a function that returns the requests for objects of a kind without calls.
func (p *process) watch(kind schema.GroupVersionKind, requests func(client.Object) []reconcile.Request) {
	i := p.informer(kind)
	i.plain = append(i.plain, requests)
}

// ownerOf returns the key of the controller owner of an object if it is of a kind.
func (p *plan) ownerOf(kind schema.GroupVersionKind, obj client.Object) (types.NamespacedName, bool) {
	for _, owner := range obj.GetOwnerReferences() {
		if owner.Controller == nil || !*owner.Controller || owner.Kind != kind.Kind {
			continue
		}
		if group, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || group.Group != kind.Group {
			continue
		}
		key := types.NamespacedName{Name: owner.Name}
		if k, ok := p.registry.For(kind); !ok || k.Namespaced {
			key.Namespace = obj.GetNamespace()
		}
		return key, true
	}
	return types.NamespacedName{}, false
}

// informer returns the cache of a kind, which starts with the current state.
func (p *process) informer(kind schema.GroupVersionKind) *informer {
	if i := p.existing(kind); i != nil {
		return i
	}
	i := &informer{
		process: p, kind: kind, position: p.run.world.server.Version(), selector: p.run.plan.selectors[kind],
	}
	i.objects = i.list()
	for _, s := range p.stale {
		if s.kind == kind {
			s.begin(p.run, i)
		}
	}
	p.run.watchAllowed(p, kind)
	p.informers = append(p.informers, i)
	return i
}
