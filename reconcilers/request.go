// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/hotloop"
	"trueup.dev/internal/engine/step"
	"trueup.dev/observe"
	"trueup.dev/stash"
	rtime "trueup.dev/time"
)

// requests holds the state that a root reconciler keeps between requests. The zero value is ready to use. It is safe
// for concurrent use.
type requests struct {
	step    rootStep
	gate    guard.Gate
	loops   hotloop.Detector
	looping loopConditions
	halts   halts
	retries reflectedRetries
}

// rootStep is the step of a root reconciler. It is created on the first request.
type rootStep struct {
	once sync.Once
	step.Node
	// object is the kind of the resource in journals. It is empty without a guard.
	object guard.Object
}

func (s *rootStep) of(r root) *rootStep {
	s.once.Do(func() {
		s.Node = step.Node{Name: r.name, Values: []any{"resourceType", resourceTypeName(r.config, r.resourceType)}}
		s.object = r.config.guard.Object(r.resourceType)
	})
	return s
}

// resource returns the name of the resource of a request in journals.
func (s *rootStep) resource(req Request) guard.Object {
	object := s.object
	object.NamespacedName = req.NamespacedName
	return object
}

// request is the state of one request to a root reconciler.
type request struct {
	scope     scope
	journal   guard.Journal
	waits     waits
	reflected reflected
	applies   applies
	trace     step.Trace
	stored    onStored
	// requests is the state that the root reconciler keeps between requests.
	requests *requests
	// byController reports whether a controller made the request. Otherwise a test made it, and users compare its logs
	// and events.
	byController bool
	// guarded reports whether the request waits for the caches. findsLoops reports whether hot loops are detected.
	guarded, findsLoops bool
	// resource is the reconciled resource. It is nil until the resource was fetched.
	resource client.Object
	// generation is the generation of the resource when it was fetched. Writes of the request change the generation in
	// resource.
	generation int64
	uid        types.UID
	// completed reports whether the tree of reconcilers succeeded.
	completed bool
	// requeues records requeues of a request that may be in a hot loop.
	requeues requeues
	started  time.Time
}

// beginRequest prepares the context of one request. If the caches have not yet received the previous writes for the
// request, wait is greater than 0 and the returned request is nil.
func (r root) beginRequest(
	ctx context.Context, requests *requests, scope scope, byController bool,
) (_ context.Context, this *request, wait time.Duration) {
	this = &request{
		scope: scope, requests: requests, byController: byController,
		reflected: reflected{reconciler: r.name, config: scope.originalConfig, ctx: ctx},
		trace:     step.Trace{Ignore: isQuiet, Explain: causeOf}, started: time.Now(),
	}
	this.waits.byController = byController
	loop := hotloop.Entry{}
	if byController && !r.config.AllowHotLoops {
		this.findsLoops = true
		if loop = r.enterLoop(ctx, requests, scope.request); loop.Wait > 0 {
			return ctx, nil, loop.Wait
		}
	}
	if byController && r.config.guard != nil && !r.config.AllowStaleReads {
		wait = requests.gate.Enter(ctx, scope.request, &this.journal, r.config.staleReadsTimeout())
		if wait > 0 {
			r.config.Hub().Report(ctx, &observe.StaleWait{Reconciler: r.name, Wait: wait})
			return ctx, nil, wait
		}
		if this.journal.TimedOut() {
			r.reportDeferred(ctx, observe.DeferStaleTimeout)
		}
		this.guarded = true
	}
	if this.guarded || this.findsLoops {
		this.scope.journal = &this.journal
	}
	switch {
	case loop.InspectWrites && !loop.Inspect:
		this.journal.InspectWrites()
	case loop.Inspect:
		this.journal.Inspect()
		ctx = step.WithObserver(ctx, &this.requeues)
	}
	this.scope.requestErr, this.scope.reflected, this.scope.waits = ctx.Err, &this.reflected, &this.waits
	this.scope.applies = &this.applies
	ctx = step.Root(ctx, &this.trace)
	ctx = stash.WithContext(ctx)
	ctx = rtime.StashNow(ctx, time.Now())
	return this.scope.ontoRoot(ctx), this, 0
}

// inController reports whether a controller made the request, and not a test that calls a reconciler directly.
func inController(ctx context.Context) bool {
	w := waitsFrom(ctx)
	return w != nil && w.byController
}

// run executes do as the step of the root reconciler and settles the outcome.
func (r *request) run(
	ctx context.Context, root root, do func(ctx context.Context, _ client.Object) (Result, error),
) (Result, error) {
	defer r.end(ctx)
	result, err := step.Run(ctx, r.requests.step.of(root).Node, root.resourceType, do)
	r.holdReferences(root, err)
	result, err = r.settle(ctx, root, result, err)
	r.leaveLoop(ctx, root, result, err)
	if err == nil {
		result = r.requests.looping.requeue(root.config, r.scope.request, result)
	}
	return result, err
}

// holdReferences makes the references of the resource last while it is idle. If the request has renewed all references
// that the resource still needs, the others are dropped.
func (r *request) holdReferences(root root, err error) {
	if !r.byController || r.resource == nil {
		return
	}
	renewedSince := time.Time{}
	if r.completed && err == nil && !r.waits.partial.Load() && !r.reflected.failed.Load() {
		renewedSince = r.started
	}
	r.scope.originalConfig.hold(root.resourceType, r.scope.request, renewedSince)
}

// settle returns the result and error that the root reconciler returns to its caller.
func (r *request) settle(ctx context.Context, root root, result Result, err error) (Result, error) {
	switch {
	case !isQuiet(err):
		r.requests.halts.reset(r.scope.request)
		if err == nil {
			result = r.retryReflected(r.retryStale(root.config, result))
		}
		return result, r.report(ctx, root.config, err)
	case errors.Is(err, ErrRetryAfter) || r.haltedUntil(result, err):
		r.requests.halts.reset(r.scope.request)
		return r.retryReflected(r.retryStale(root.config, result)), nil
	case r.byController:
		return r.halted(ctx, root, result, err), nil
	}
	return withPriority(backOff, result), nil
}

// haltedUntil reports whether a request of a controller halted with a RequeueAfter.
func (r *request) haltedUntil(result Result, err error) bool {
	return r.byController && result.RequeueAfter > 0 && errors.Is(err, ErrHaltSubReconcilers)
}

// retryStale returns the result of a request that did not fail or that halted. If the request depends on an object that
// the caches do not have, it is requeued after the stale-reads timeout.
func (r *request) retryStale(config Config, result Result) Result {
	if !r.guarded || !r.journal.ComesAgain() || result.Requeue { //nolint:staticcheck // reconcilers still set it
		return result
	}
	again := config.staleReadsTimeout()
	if result.RequeueAfter == 0 || result.RequeueAfter > again {
		result.RequeueAfter = again
	}
	return result
}

// fetched records the resource of the request.
func (r *request) fetched(ctx context.Context, resource client.Object) {
	r.resource, r.generation, r.uid = resource, resource.GetGeneration(), resource.GetUID()
	if r.byController {
		observe.WhenStuck(ctx, r)
	}
	if excluded, found := r.journal.Excluded(); found {
		r.warnExcluded(excluded)
	}
}

// warnExcluded warns about an object that this controller wrote and that its cache leaves out.
func (r *request) warnExcluded(object guard.Object) {
	r.scope.originalConfig.recorder().Eventf(r.resource, corev1.EventTypeWarning, "NotInCache", "%s", truncate(fmt.Sprintf(
		"%s %q was written and is not in the cache of this controller, so its changes go unnoticed: the cache.Options of "+
			"the manager select other objects. Let ByObject, DefaultNamespaces, DefaultLabelSelector and DefaultFieldSelector "+
			"select it, or write the labels that they select", object.Kind.Kind, object.Name)))
}

// ReportStuck implements [observe.StuckReporter]. The request runs meanwhile, and changes the resource.
func (r *request) ReportStuck(run *observe.Run, path string) {
	resource := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: run.Object.Namespace, Name: run.Object.Name, UID: r.uid,
	}}
	resource.SetGroupVersionKind(run.Kind)
	r.scope.originalConfig.recorder().Eventf(resource, corev1.EventTypeWarning, "ReconcileStuck", "%s", truncate(
		path+": has not ended for more than a minute; the object is not reconciled meanwhile"))
}

// end runs after a request, also when the request panics.
func (r *request) end(ctx context.Context) {
	if path, panicked := r.trace.LogPanic(ctx); panicked && r.byController && r.resource != nil {
		r.scope.originalConfig.recorder().Eventf(r.resource, corev1.EventTypeWarning, reconcileFailed, "%s",
			truncate(path+": the step panicked, see the log of the controller for the stack"))
	}
	if r.byController && r.resource != nil {
		for _, text := range observe.TakeDropped(ctx) {
			r.scope.originalConfig.recorder().Event(r.resource, corev1.EventTypeWarning, "FieldsNotStored", truncate(text))
		}
	}
	if r.guarded {
		r.requests.gate.Leave(r.scope.request, &r.journal)
	}
}

func withPriority(result, from Result) Result {
	result.Priority = from.Priority
	return result
}

// backOff asks the controller to requeue with back-off, without an error in logs and metrics.
var backOff = Result{Requeue: true} //nolint:staticcheck // controller-runtime has no other way to request back-off
