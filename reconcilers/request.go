// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/guard"
	"trueup.dev/internal/hotloop"
	"trueup.dev/internal/step"
	"trueup.dev/stash"
	rtime "trueup.dev/time"
)

// requests is what a root reconciler keeps from one request to the next. The zero value is ready to use, concurrently
// too.
type requests struct {
	step    rootStep
	gate    guard.Gate
	loops   hotloop.Detector
	halts   halts
	retries reflectedRetries
}

// rootStep is the step of a root reconciler. It is made with the first request.
type rootStep struct {
	once sync.Once
	step.Node
	// object is the kind of the resource, as journals name it. It is empty without a guard.
	object guard.Object
}

func (s *rootStep) of(r root) *rootStep {
	s.once.Do(func() {
		s.Node = step.Node{Name: r.name, Values: []any{"resourceType", resourceTypeName(r.config, r.resourceType)}}
		s.object = r.config.guard.Object(r.resourceType)
	})
	return s
}

// resource is the name of the resource of a request in journals.
func (s *rootStep) resource(req Request) guard.Object {
	object := s.object
	object.NamespacedName = req.NamespacedName
	return object
}

// request is one request on its way through a root reconciler.
type request struct {
	scope     scope
	journal   guard.Journal
	waits     waits
	reflected reflected
	trace     step.Trace
	// requests is what the root reconciler keeps.
	requests *requests
	// byController is true for requests of a controller, and false for those of a test, whose logs and events users
	// compare.
	byController bool
	// guarded is true when the request waits for the caches, and findsLoops when hot loops are looked for.
	guarded, findsLoops bool
	// resource is the reconciled resource, nil as long as it is not known to exist.
	resource client.Object
	// generation is that of the resource as it was fetched: writes of the request move that of resource.
	generation int64
	// requeues is for requests that may be in a hot loop.
	requeues requeues
	started  time.Time
}

// beginRequest prepares the context of one request. A request whose own last writes have not reached the caches must
// not begin yet: then wait is not 0, and there is no request.
func (r root) beginRequest(
	ctx context.Context, requests *requests, scope scope, byController bool,
) (_ context.Context, this *request, wait time.Duration) {
	this = &request{
		scope: scope, requests: requests, byController: byController,
		reflected: reflected{reconciler: r.name}, trace: step.Trace{Ignore: isQuiet},
	}
	inspect := false
	if byController && !r.config.AllowHotLoops {
		this.findsLoops, this.started = true, time.Now()
		if wait, inspect = r.enterLoop(ctx, requests, scope.request); wait > 0 {
			return ctx, nil, wait
		}
	}
	if byController && r.config.guard != nil && !r.config.AllowStaleReads {
		wait = requests.gate.Enter(ctx, r.name, scope.request, &this.journal, r.config.staleReadsTimeout())
		if wait > 0 {
			return ctx, nil, wait
		}
		this.guarded = true
	}
	if this.guarded || this.findsLoops {
		this.scope.journal = &this.journal
	}
	if inspect {
		this.journal.Inspect()
		ctx = step.WithObserver(ctx, &this.requeues)
	}
	this.scope.requestErr, this.scope.reflected, this.scope.waits = ctx.Err, &this.reflected, &this.waits
	ctx = step.Root(ctx, &this.trace)
	ctx = stash.WithContext(ctx)
	ctx = rtime.StashNow(ctx, time.Now())
	return this.scope.ontoRoot(ctx), this, 0
}

// run calls do, which makes the request, as the step of the root reconciler, and settles what it returns.
func (r *request) run(
	ctx context.Context, root root, do func(ctx context.Context, _ client.Object) (Result, error),
) (Result, error) {
	defer r.end(ctx)
	result, err := step.Run(ctx, r.requests.step.of(root).Node, root.resourceType, do)
	result, err = r.settle(ctx, root, result, err)
	r.leaveLoop(ctx, root, result, err)
	return result, err
}

// settle returns what the caller of the root reconciler gets for what the request has returned.
func (r *request) settle(ctx context.Context, root root, result Result, err error) (Result, error) {
	switch {
	case !isQuiet(err):
		r.requests.halts.over(r.scope.request)
		if err == nil {
			result = r.retryReflected(r.retryStale(root.config, result))
		}
		return result, r.report(ctx, root.config, err)
	case errors.Is(err, ErrRetryAfter) || r.haltedUntil(result, err):
		r.requests.halts.over(r.scope.request)
		return result, nil
	case r.byController:
		return r.halted(ctx, root, result, err), nil
	}
	return withPriority(backOff, result), nil
}

// haltedUntil reports whether a request of a controller has halted and asks for a time to be made again.
func (r *request) haltedUntil(result Result, err error) bool {
	return r.byController && result.RequeueAfter > 0 && errors.Is(err, ErrHaltSubReconcilers)
}

// retryStale returns the result of a request that did not fail. One that depends on what the caches do not have is made
// again after the time in which they should.
func (r *request) retryStale(config Config, result Result) Result {
	if !r.guarded || !r.journal.ComesAgain() || result.Requeue { //nolint:staticcheck // reconcilers still ask for it
		return result
	}
	again := config.staleReadsTimeout()
	if result.RequeueAfter == 0 || result.RequeueAfter > again {
		result.RequeueAfter = again
	}
	return result
}

// fetched notes the resource that the request is about.
func (r *request) fetched(resource client.Object) {
	r.resource, r.generation = resource, resource.GetGeneration()
}

// end is called after a request, also when it panics.
func (r *request) end(ctx context.Context) {
	r.trace.LogPanic(ctx)
	if r.guarded {
		r.requests.gate.Leave(r.scope.request, &r.journal)
	}
}

func withPriority(result, from Result) Result {
	result.Priority = from.Priority
	return result
}

// backOff is a result that asks for a retry as for an error, without one: nothing of it is seen in logs and metrics.
var backOff = Result{Requeue: true} //nolint:staticcheck // there is no other way to ask for it
