// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/calledby"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/nilcheck"
)

// variation is what is different about a run without faults, so that what depends on it can be told from what does not.
type variation struct {
	seed  uint64
	delay time.Duration
	// versions is how many resource versions are gone already.
	versions int
	// skip is the number of a step that users do not take, from 1 on.
	skip int
	// twice has everything reconciled again twice when all is quiet, and not once.
	twice bool
	// slow has actors act only when all else is quiet, and reverse in the opposite order.
	slow, reverse bool
}

// newRun starts a run: the API server has what was given, and the process has started. It belongs in a bubble of
// synctest.
func newRun(p *plan, s schedule, v variation, log *timeline) *run {
	time.Sleep(v.delay)
	if p.Reset != nil {
		p.Reset()
	}
	r := &run{
		plan: p, skip: v.skip, twice: v.twice, slow: v.slow, reverse: v.reverse, schedule: s, begin: time.Now(),
		ctx: context.Background(), woken: make(chan struct{}, 1), log: log,
		server: memapi.New(memapi.Options{Registry: p.registry, Applier: p.applier, Seed: v.seed}),
		own:    map[types.UID]bool{}, visits: map[site]int{}, finalized: map[string]bool{},
		unsettled: map[types.NamespacedName]int{}, calm: map[request]int{}, far: map[request]time.Time{},
		patient: map[request]bool{}, waited: map[request]wait{}, made: newLedger(), quietAt: time.Now(),
	}
	r.user, r.other = r.server.Client("user"), r.server.Client("somebody")
	for _, actor := range p.actors {
		r.actors = append(r.actors, &actorState{actorOf: actor, client: r.server.Client(actor.Name)})
	}
	r.acting = "user"
	r.age(v.versions)
	r.give()
	for order := 1; order <= 3; order++ {
		if r.meet(
			site{act: "lists", key: types.NamespacedName{Name: fmt.Sprint("order ", order)}}, setOf(FaultListOrder),
		) == FaultListOrder {
			r.shuffled = order
		}
	}
	r.start(1)
	return r
}

// age makes the API server one that has seen something already.
func (r *run) age(versions int) {
	for n := range versions {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		obj.SetNamespace(metav1.NamespaceDefault)
		obj.SetName("converge-" + strconv.Itoa(n))
		if err := errors.Join(r.user.Create(r.ctx, obj), r.user.Delete(r.ctx, obj)); err != nil {
			r.violate(scenarioFailure(err.Error()))
			return
		}
	}
	r.routed = r.server.Version()
}

// give creates the objects that exist before the controller starts.
func (r *run) give() {
	for i, given := range r.plan.Given {
		obj := given.DeepCopyObject().(client.Object)
		obj.SetResourceVersion("")
		if err := r.user.Create(r.ctx, obj); err != nil {
			r.violate(scenarioFailure(fmt.Sprintf("Given[%d]: %v", i, err)))
			return
		}
		gvk, err := apiutil.GVKForObject(given, r.plan.Scheme)
		if kind, ok := r.plan.registry.For(gvk); err != nil || !ok || !kind.Status || !hasStatus(given) {
			continue
		}
		withStatus := given.DeepCopyObject().(client.Object)
		withStatus.SetResourceVersion(obj.GetResourceVersion())
		if err := r.user.Status().Update(r.ctx, withStatus); err != nil {
			r.violate(scenarioFailure(fmt.Sprintf("Given[%d]: status: %v", i, err)))
			return
		}
	}
	for _, e := range r.server.Events(r.routed) {
		r.observe(e)
		r.tellActors(e)
	}
	r.routed = r.server.Version()
}

// start starts a process, whose caches begin with what there is.
func (r *run) start(number int, stale ...staleStart) {
	p := &process{
		run: r, number: number, written: map[schema.GroupVersionKind]int64{}, filled: map[client.Object]string{},
		stale: stale,
	}
	p.ctx, p.cancel = context.WithCancel(calledby.Controller())
	r.process = p
	base := r.server.Client("manager")
	cached := &processClient{Client: base, process: p}
	p.env = Env{
		Client: cached, APIReader: &processClient{Client: base, process: p, live: true}, Scheme: r.plan.Scheme,
		Recorder: &record.FakeRecorder{}, Cloud: Cloud{p}, process: p,
	}
	m := newManager(p, cached)
	p.env.Cache, p.env.Manager = m.cache, m
	if r.plan.Consistency == Gate {
		m.Client = p.guarded(cached, p.env.APIReader, m.cache)
		p.env.Client = m.Client
	}
	for _, kind := range r.plan.read {
		p.informer(kind)
	}
	if r.plan.Setup != nil {
		p.manager = m
		r.startManager(m)
		return
	}
	if r.plan.Indexes != nil {
		if err := r.plan.Indexes(m.cache); err != nil {
			r.violate(scenarioFailure("Indexes: " + err.Error()))
			return
		}
	}
	// What a constructor does it may also do with the client.
	built := make(chan struct{})
	go func() {
		defer close(built)
		p.reconciler = r.plan.New(p.env)
		r.wake()
	}()
	r.serveUntil(built)
	if p.dead.Load() {
		return // before it was ready
	}
	if p.reconciler = r.consistent(p, p.reconciler); p.reconciler == nil {
		r.violate(scenarioFailure("New returned nil"))
		return
	}
	p.watch(r.plan.primary, func(obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	})
	for _, kind := range r.plan.owns {
		p.watch(kind, r.plan.ownerOf)
	}
	for _, w := range r.plan.watches {
		p.informer(w.kind).mappers = append(p.informer(w.kind).mappers, w.Requests)
	}
	for _, i := range p.informers {
		var initial []change
		for _, obj := range i.objects {
			initial = append(initial, change{after: obj, initial: true})
		}
		r.deliver(i, initial)
	}
}

// serveUntil serves calls until something is done.
func (r *run) serveUntil(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-r.woken:
			r.serveNext()
		}
	}
}

// watch has objects of a kind lead to requests that need no calls to find.
func (p *process) watch(kind schema.GroupVersionKind, requests func(client.Object) []reconcile.Request) {
	i := p.informer(kind)
	i.plain = append(i.plain, requests)
}

// ownerOf returns the request for the controller owner of an object.
func (p *plan) ownerOf(obj client.Object) []reconcile.Request {
	for _, owner := range obj.GetOwnerReferences() {
		if owner.Controller == nil || !*owner.Controller || owner.Kind != p.primary.Kind {
			continue
		}
		if group, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || group.Group != p.primary.Group {
			continue
		}
		key := types.NamespacedName{Name: owner.Name}
		if kind, ok := p.registry.For(p.primary); !ok || kind.Namespaced {
			key.Namespace = obj.GetNamespace()
		}
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}

// informer returns the cache of a kind, which starts with what there is now.
func (p *process) informer(kind schema.GroupVersionKind) *informer {
	if i := p.existing(kind); i != nil {
		return i
	}
	i := &informer{kind: kind, objects: p.run.server.List(kind), position: p.run.server.Version()}
	for _, s := range p.stale {
		if s.kind == kind {
			s.begin(p.run, i)
		}
	}
	p.informers = append(p.informers, i)
	return i
}

// staleStart is a cache that begins with an old list.
type staleStart struct {
	kind schema.GroupVersionKind
	// back is how many events of the kind are missing.
	back int
}

func (s staleStart) begin(r *run, i *informer) {
	events := r.eventsOf(s.kind)
	if len(events) < s.back {
		return
	}
	at := len(events) - s.back
	i.objects = nil
	for _, e := range events[:at] {
		i.store(e.Type, e.Key, e.Object)
	}
	i.position = events[at].Version - 1
	i.coming = append(i.coming, events[at:]...)
	i.held = &hold{fault: FaultLagReconcile, reconcile: r.reconciles}
}

// deliver tells those who watch a kind of changes.
func (r *run) deliver(i *informer, changes []change) {
	if len(changes) == 0 {
		return
	}
	for _, c := range changes {
		for _, obj := range []client.Object{c.before, c.after} {
			if nilcheck.IsNil(obj) {
				continue
			}
			for _, requests := range i.plain {
				for _, req := range requests(obj) {
					r.process.queue.add(request{Request: req}, time.Now())
				}
			}
		}
	}
	if len(i.mappers) == 0 && len(i.handlers) == 0 {
		return
	}
	r.inDelivery(func() {
		for _, c := range changes {
			r.process.tell(i, c)
		}
	})
}

// inDelivery has a cache tell of changes, one at a time. What is told may make calls.
func (r *run) inDelivery(tell func()) {
	p := r.process
	if p.delivering {
		p.deliveries = append(p.deliveries, tell)
		return
	}
	p.delivering = true
	go func() {
		defer func() { // also when the process dies meanwhile
			p.mu.Lock()
			p.delivered = true
			p.mu.Unlock()
			r.wake()
		}()
		tell()
	}()
}

// tell has those who watch look at a change. They may make calls.
func (p *process) tell(i *informer, c change) {
	for _, obj := range []client.Object{c.before, c.after} {
		if nilcheck.IsNil(obj) {
			continue
		}
		for _, requests := range i.mappers {
			for _, req := range requests(p.ctx, i.share(obj)) {
				p.mu.Lock()
				p.queue.add(request{Request: req}, time.Now())
				p.mu.Unlock()
			}
		}
	}
	for _, h := range i.handlers {
		h.tell(i, c)
	}
}
