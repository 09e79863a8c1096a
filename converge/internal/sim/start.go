// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/kinds"
)

// start starts a process of a program, whose caches start with the current state.
func (r *run) start(program *Program, number int, stale ...staleStart) {
	p := &Process{
		scene: r.scene, program: program, version: r.machine.of(number), gateway: &r.gateway, processes: &r.processes,
		listOrder: r.listOrder, number: number,
		written: map[schema.GroupVersionKind]int64{}, handedVersions: map[client.Object]string{}, stale: stale,
		restarting: number > 1 && program.Setup != nil,
	}
	p.ctx, p.cancel = context.WithCancel(calledby.Controller())
	r.processes.set(p)
	r.faults.processStarted(number)
	if program.Index == 0 {
		r.trace.ProcessStarted(number)
	}
	base := r.world.Server.Client(p.program.Client)
	cached := newProcessClient(base, p, false)
	p.Client, p.APIReader, p.Recorder = cached, newProcessClient(base, p, true), recorder{p}
	p.direct = &controllerQueue{process: p, limiter: newRateLimiter()}
	m := newManager(p, cached)
	p.Cache, p.Manager = m.cache, m
	if r.machine.Gate {
		m.Client = p.guarded(cached, p.APIReader, m.cache)
		p.Client = m.Client
	}
	for _, kind := range p.version.Read[p.program] {
		p.informer(kind)
	}
	if p.program.Setup != nil {
		p.manager = m
		r.startManager(m)
		return
	}
	r.startReconciler(p, m)
}

// startReconciler starts the reconciler of a scenario with New.
func (r *run) startReconciler(p *Process, m *processManager) {
	if p.program.Indexes != nil {
		if err := p.program.Indexes(m.cache); err != nil {
			r.verdict.Violate(finding.ScenarioFailure("Indexes: " + err.Error()))
			return
		}
	}
	// Constructors may use the client.
	mappers := make([]handler.MapFunc, len(p.program.Watches))
	built := make(chan struct{})
	go func() {
		defer close(built)
		p.reconciler = p.program.Build(p)
		for i, w := range p.program.Watches {
			if mappers[i] = w.Requests; w.NewRequests != nil {
				mappers[i] = w.NewRequests(p)
			}
		}
		r.scheduler.wake()
	}()
	r.gateway.serveUntil(p, built)
	if p.dead.Load() {
		return // it has crashed during the start
	}
	if p.reconciler = p.consistent(p.reconciler); p.reconciler == nil {
		r.verdict.Violate(finding.ScenarioFailure("New returned nil"))
		return
	}
	r.startWebhooks(m)
	p.watch(p.version.Primary, func(obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	})
	for _, kind := range p.program.Owns {
		p.watch(kind, func(obj client.Object) []reconcile.Request {
			if key, ok := ownerOf(p.version.Registry, p.version.Primary, obj); ok {
				return []reconcile.Request{{NamespacedName: key}}
			}
			return nil
		})
	}
	for i, w := range p.program.Watches {
		if mappers[i] == nil {
			r.verdict.Violate(finding.ScenarioFailure(fmt.Sprintf("Watches[%d].NewRequests returned nil", i)))
			return
		}
		p.informer(w.Kind).mappers = append(p.informer(w.Kind).mappers, mappers[i])
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

// watch adds a function that returns the requests for objects of a kind without calls.
func (p *Process) watch(kind schema.GroupVersionKind, requests func(client.Object) []reconcile.Request) {
	i := p.informer(kind)
	i.plain = append(i.plain, requests)
}

// ownerOf returns the key of the controller owner of an object if it is of a kind.
func ownerOf(registry *kinds.Registry, kind schema.GroupVersionKind, obj client.Object) (types.NamespacedName, bool) {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kind.GroupKind() {
		return types.NamespacedName{}, false
	}
	key := types.NamespacedName{Name: owner.Name}
	if k, ok := registry.For(kind); !ok || k.Namespaced {
		key.Namespace = obj.GetNamespace()
	}
	return key, true
}

// informer returns the cache of a kind, which starts with the current state.
func (p *Process) informer(kind schema.GroupVersionKind) *informer {
	if i := p.existing(kind); i != nil {
		return i
	}
	i := &informer{process: p, kind: kind, selector: p.machine.Selectors[kind]}
	if selector := p.selectors[kind]; selector != nil {
		i.selector = selector
	}
	i.begin()
	p.gateway.permissions.watchAllowed(p.program, kind)
	p.informers = append(p.informers, i)
	return i
}

// begin fills the cache with the current state, or with an old list.
func (i *informer) begin() {
	i.position, i.coming = i.process.world.Server.Version(), nil
	i.objects = i.list()
	for _, s := range i.process.stale {
		if s.kind == i.kind {
			s.begin(i.process, i)
		}
	}
}

// staleStart is a cache that starts with an old list.
type staleStart struct {
	kind schema.GroupVersionKind
	// back is the number of events of the kind that it lacks.
	back int
}

func (s staleStart) begin(p *Process, i *informer) {
	events := p.world.EventsOf(s.kind)
	if len(events) < s.back {
		return
	}
	at := len(events) - s.back
	i.objects = nil
	clear(i.selected)
	for n, e := range events {
		e, ok := i.shows(e)
		switch {
		case ok && n < at:
			i.store(e.Type, e.Key, e.Object)
		case ok:
			i.coming = append(i.coming, e)
		}
	}
	i.position = events[at].Version - 1
	i.held = &hold{fault: inject.LagReconcile, reconcile: p.trace.Reconciles}
}

// meaning classifies the watch events before which a cache may start.
type meaning int

const (
	ordinary meaning = iota
	// creation is the creation of an object.
	creation
	// deletion is the start or the end of the deletion of an object, and earlierLife is the same for an object with the
	// name of an object that was created later.
	deletion
	earlierLife
	// generation is a change of the generation of a primary object.
	generation
)

// staleMoments lists how many events behind a cache may start: so that it lacks one of the last events, or everything
// since an event that decisions depend on. It has momentsEach of each kind, the most recent ones, in ascending order.
func staleMoments(events []memapi.Event, primary bool) []int {
	const momentsEach = 3
	var moments []int
	created, found := map[types.NamespacedName]bool{}, map[meaning]int{}
	for back := 1; back <= len(events); back++ {
		e := events[len(events)-back]
		m := meaningOf(e, primary)
		if m == deletion && created[e.Key] {
			m = earlierLife
		}
		if m == creation {
			created[e.Key] = true
		}
		if m != ordinary {
			found[m]++
		}
		if back <= momentsEach || m != ordinary && found[m] <= momentsEach {
			moments = append(moments, back)
		}
	}
	return moments
}

func meaningOf(e memapi.Event, primary bool) meaning {
	switch {
	case e.Type == watch.Added:
		return creation
	case e.Type == watch.Deleted, e.Object.GetDeletionTimestamp() != nil && e.Old.GetDeletionTimestamp() == nil:
		return deletion
	case primary && e.Object.GetGeneration() != e.Old.GetGeneration():
		return generation
	}
	return ordinary
}
