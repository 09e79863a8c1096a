// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/guard"
	"trueup.dev/internal/hotloop"
	"trueup.dev/internal/step"
	"trueup.dev/stash"
	rtime "trueup.dev/time"
	"trueup.dev/validation"
)

// root is what the reconcilers at the root of a tree have in common when they are set up.
type root struct {
	// kind is the Go name of the reconciler, for errors.
	kind string
	name string
	// named is true when the author has chosen the name.
	named        bool
	resourceType client.Object
	config       Config
}

func (r root) logger(ctx context.Context) context.Context {
	log := logr.FromContextOrDiscard(ctx).WithName(r.name).WithValues("resourceType", resourceTypeName(r.config, r.resourceType))
	return logr.NewContext(ctx, log)
}

// validate validates the whole tree and returns an error that lists every problem.
func (r root) validate(ctx context.Context, reconciler validation.Validator) error {
	err := everyProblem(reconciler.Validate(validation.WithRecursive(ctx)))
	if r.config.Client == nil {
		err = errors.Join(err, fmt.Errorf("%s %q must define Config", r.kind, r.name))
	}
	return err
}

// builder returns a builder for a controller of the resource. A name that the author has chosen names the controller too, in logs and metrics, and lets
// several controllers for one kind live in one manager.
func (r root) builder(mgr Manager, options []builder.ForOption) *Builder {
	watched := watchable(r.resourceType, r.config.Scheme())
	if r.config.cache == mgr.GetCache() {
		r.config.guard.Watch(watched)
	}
	bldr := builder.ControllerManagedBy(mgr).For(watched, options...)
	if r.named {
		bldr.Named(r.name)
	}
	return bldr
}

// rootStep is the step of a root reconciler. It is made with the first request.
type rootStep struct {
	once sync.Once
	step.Node
}

func (s *rootStep) of(r root) step.Node {
	s.once.Do(func() {
		s.Node = step.Node{Name: r.name, Values: []any{"resourceType", resourceTypeName(r.config, r.resourceType)}}
	})
	return s.Node
}

// request is one request on its way through a root reconciler.
type request struct {
	scope     scope
	journal   guard.Journal
	gate      *guard.Gate // nil unless the request is guarded
	waits     waits
	reflected reflected
	trace     step.Trace
	// byController is true for requests of a controller, and false for those of a test, whose logs and events users compare.
	byController bool
	// resource is the reconciled resource, nil as long as it is not known to exist.
	resource client.Object
	// generation is that of the resource as it was fetched: writes of the request move that of resource.
	generation int64
	// loops is nil unless hot loops are looked for, and requeues is for requests that may be in one.
	loops    *hotloop.Detector
	requeues requeues
	started  time.Time
}

// fetched notes the resource that the request is about.
func (r *request) fetched(resource client.Object) {
	r.resource, r.generation = resource, resource.GetGeneration()
}

// end belongs in a defer of the root reconciler.
func (r *request) end(ctx context.Context) {
	r.trace.LogPanic(ctx)
	if r.gate != nil {
		r.gate.Leave(r.scope.request, &r.journal)
	}
}

// settle returns the result of a request that did not fail. One that depends on what the caches do not have is made again after the time in which they should.
func (r *request) settle(config Config, result Result) Result {
	if r.gate == nil || !r.journal.ComesAgain() || result.Requeue { //nolint:staticcheck // reconcilers still ask for it
		return result
	}
	again := config.staleReadsTimeout()
	if result.RequeueAfter == 0 || result.RequeueAfter > again {
		result.RequeueAfter = again
	}
	return result
}

// beginRequest prepares the context of one request. A request whose own last writes have not reached the caches must not begin yet: then wait is not 0, and
// there is no request.
func (r root) beginRequest(
	ctx context.Context, gate *guard.Gate, loops *hotloop.Detector, scope scope, byController bool,
) (_ context.Context, this *request, wait time.Duration) {
	this = &request{
		scope: scope, byController: byController, reflected: reflected{reconciler: r.name}, trace: step.Trace{Ignore: isQuiet},
	}
	inspect := false
	if byController && !r.config.AllowHotLoops {
		this.loops, this.started = loops, time.Now()
		if wait, inspect = r.enterLoop(ctx, loops, scope.request); wait > 0 {
			return ctx, nil, wait
		}
	}
	if byController && r.config.guard != nil && !r.config.AllowStaleReads {
		wait = gate.Enter(ctx, r.name, this.scope.request, &this.journal, r.config.staleReadsTimeout())
		if wait > 0 {
			return ctx, nil, wait
		}
		this.gate = gate
	}
	if this.gate != nil || this.loops != nil {
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

// hooks are what an author wants to be called around each request.
type hooks struct {
	before func(ctx context.Context, req Request) (context.Context, Result, error)
	after  func(ctx context.Context, req Request, res Result, err error) (Result, error)
}

// around calls the hooks around do. An error from before ends the request.
func (h hooks) around(ctx context.Context, req Request, do func(ctx context.Context) (Result, error)) (Result, error) {
	before := Result{}
	if h.before != nil {
		replaced, result, err := h.before(ctx, req)
		if err != nil {
			return result, err
		}
		if replaced != nil {
			ctx = replaced
		}
		before = result
	}
	result, err := do(ctx)
	result = AggregateResults(before, result)
	if h.after != nil {
		return h.after(ctx, req, result, err)
	}
	return result, err
}

// resourceTypeName is a kind for log lines: group and kind where they are known.
func resourceTypeName(config Config, resourceType client.Object) string {
	if config.Client != nil && !isNil(resourceType) {
		if gvk, err := config.GroupVersionKindFor(resourceType); err == nil {
			return gvk.GroupKind().String()
		}
	}
	return typeName(resourceType)
}

// resourceName is the kind of a resource for the name of its reconciler.
func resourceName(config Config, resourceType client.Object) string {
	if isGeneric(resourceType) && config.Client != nil {
		if gvk, err := config.GroupVersionKindFor(resourceType); err == nil {
			return gvk.Kind
		}
	}
	return typeName(resourceType)
}
