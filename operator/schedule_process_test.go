// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// scheduleProcess is one process of a controller, with its cache and its queue.
type scheduleProcess struct {
	world      *scheduleWorld
	number     int
	controller *Controller[resource.Object]
	edges      []*WithEdge[resource.Object]
	recorders  []predicate.Predicate
	queue      scheduleQueue

	// position is the cache's position in the history, and cached its content.
	position int
	cached   map[string]subject
	// undelivered are the notifications for states that the cache already has.
	undelivered []func()

	memories map[memoryKey]*memory
	writes   map[types.UID]versionAt
	// requests counts the requests for each name.
	requests map[string]int
	// found is the object that the current, or last, request for a name has read.
	found map[string]subject
}

type versionAt struct {
	version int
	at      time.Time
	// request is the request that has written it, if the write was a mark in the status.
	request int
}

// crashed is the panic value by which a process crashes.
type crashed struct{}

// restart replaces the process by a new one whose cache starts at a position of the history.
func (w *scheduleWorld) restart(position int) {
	number := 1
	if w.process != nil {
		number = w.process.number + 1
	}
	w.tracef("process %d starts with a list at %d of %d", number, position, len(w.server.history))
	p := &scheduleProcess{
		world: w, number: number, position: position, cached: w.server.at(position), queue: newScheduleQueue(),
		memories: map[memoryKey]*memory{}, writes: map[types.UID]versionAt{}, requests: map[string]int{},
		found: map[string]subject{},
	}
	w.process = p
	handlers, edges := w.build()
	manager := scheduleManager{world: w}
	p.controller = &Controller[resource.Object]{
		Type: w.server.proto, Handlers: handlers, Config: reconcilers.NewConfig(manager, nil, time.Hour),
	}
	if err := p.controller.SetupWithManager(context.Background(), manager); err != nil {
		panic(err)
	}
	p.edges = edges
	for _, edge := range edges {
		// The builder does not expose the predicates that SetupWithManager has added.
		p.recorders = append(p.recorders, edge.ledgerPredicate(w.server.proto))
	}
	for _, name := range scheduleNames {
		if obj := p.cached[name]; obj != nil {
			p.created(obj, true)
		}
	}
	p.deliver()
}

func (p *scheduleProcess) wrote(obj subject, status bool) {
	written := versionAt{version: versionOf(obj), at: time.Now()}
	if status {
		written.request = p.requests[obj.GetName()]
	}
	p.writes[obj.GetUID()] = written
}

// work handles a request as a controller does.
func (p *scheduleProcess) work(name string) {
	p.queue.begin(name)
	p.requests[name]++
	begin := time.Now()
	result, err := p.reconcile(name)
	p.queue.end(name)
	p.world.tracef("  request for %s: %v, %v", name, result, err)
	switch {
	case errors.Is(err, reconcile.TerminalError(nil)):
	case err != nil:
		p.queue.addRateLimited(name)
	case result.RequeueAfter > 0:
		p.queue.forget(name)
		p.queue.add(name, result.RequeueAfter)
		p.checkTimers(name, time.Since(begin))
	case result.Requeue: //nolint:staticcheck // the roots ask for it
		p.queue.addRateLimited(name)
	default:
		p.queue.forget(name)
		p.checkTimers(name, time.Since(begin))
	}
}

// reconcile calls the controller, and recovers from panics of handlers as controllers do.
func (p *scheduleProcess) reconcile(name string) (result reconcile.Result, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case handlerPanic:
			result, err = reconcile.Result{}, errors.New("panic")
		default:
			panic(r)
		}
	}()
	return p.controller.Reconcile(p.world.ctx, reconcile.Request{
		NamespacedName: types.NamespacedName{Namespace: "default", Name: name},
	})
}
