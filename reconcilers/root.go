// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/graph"
	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/engine/fairqueue"
	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/hotloop"
	"trueup.dev/internal/engine/served"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
	"trueup.dev/validation"
)

// root holds the setup settings that all root reconcilers share.
type root struct {
	// kind is the Go name of the reconciler. Errors contain it.
	kind string
	name string
	// named reports whether the user set the name.
	named        bool
	resourceType client.Object
	config       Config
}

func (r root) logger(ctx context.Context) context.Context {
	log := logr.FromContextOrDiscard(ctx).WithName(r.name)
	return logr.NewContext(ctx, log.WithValues("resourceType", resourceTypeName(r.config, r.resourceType)))
}

// validate validates the whole tree and returns an error that lists every problem.
func (r root) validate(ctx context.Context, reconciler validation.Validator) error {
	err := everyProblem(reconciler.Validate(validation.WithRecursive(ctx)))
	if r.config.Client == nil {
		err = errors.Join(err, fmt.Errorf("%s %q must define Config", r.kind, r.name))
	}
	return err
}

// builder returns a builder for a controller of the resource. A name that the user set also names the controller, in
// logs and metrics. Several controllers for one kind can then share a manager.
func (r root) builder(mgr Manager, options []builder.ForOption) *Builder {
	watched := watchable(r.resourceType, r.config.Scheme())
	if r.config.cache == mgr.GetCache() {
		r.config.guard.Watch(watched)
	}
	bldr := builder.ControllerManagedBy(mgr).For(watched, options...)
	if r.named {
		bldr.Named(r.name)
	}
	if r.config.FairNamespaces {
		r.takeTurns(bldr)
	}
	return observe.Controller(bldr)
}

// whileServed makes the watches of the resource wait until its kind is served. It returns the manager for the rest of
// the set-up.
func (r root) whileServed(ctx context.Context, mgr Manager, bldr *Builder, need served.Need) (Manager, error) {
	g, err := gateOf(ctx, r.config, mgr, bldr)
	if err != nil {
		return nil, fmt.Errorf("%s %q: WhileServed: %w", r.kind, r.name, err)
	}
	if kind, err := r.config.GroupVersionKindFor(r.resourceType); err == nil {
		// If the kind is unknown, the builder returns a better error.
		g.cover(r.name, need, kind)
	}
	return gatedManager{mgr, g}, nil
}

// admit decides whether a request goes on, before anything else happens, see [Config.Shard]. cached reports whether the
// resource is read from a cache.
func (r root) admit(ctx context.Context, req Request, cached bool) (ours bool, _ Result, _ error) {
	if r.config.Shard == nil {
		return true, Result{}, nil
	}
	if r.config.Shard.Lapsed() {
		r.reportDeferred(ctx, observe.DeferLease)
	}
	var options []client.GetOption
	if cached {
		options = append(options, client.UnsafeDisableDeepCopy)
	}
	resource := empty.Like(r.resourceType)
	if err := r.config.Get(ctx, req.NamespacedName, resource, options...); err != nil {
		return r.config.Shard.Admit(ctx, r.config.Client, nil) // the request handles the error
	}
	return r.config.Shard.Admit(ctx, r.config.Client, resource)
}

// takeTurns gives the controller a queue in which the namespaces take turns. The options of the user's Setup replace
// the options of the builder, therefore the queue is set when the controller is made.
func (r root) takeTurns(bldr *Builder) {
	if !ctrlfields.WrapNewController(bldr, func(create ctrlfields.NewController) ctrlfields.NewController {
		return func(name string, mgr Manager, options controller.Options) (controller.Controller, error) {
			if options.NewQueue != nil {
				return nil, fmt.Errorf(
					"%s %q must not define Config.FairNamespaces and NewQueue in controller.Options: each chooses the queue",
					r.kind, r.name,
				)
			}
			options.NewQueue = fairqueue.New
			return create(name, mgr, options)
		}
	}) {
		bldr.WithOptions(controller.Options{NewQueue: fairqueue.New})
	}
}

// reportDeferred reports that a request continues later, or that it no longer waits.
func (r root) reportDeferred(ctx context.Context, reason observe.DeferReason) {
	r.config.Hub().Report(ctx, &observe.Deferred{Reconciler: r.name, Reason: reason})
}

// reportLoop reports a hot loop of a request.
func (r root) reportLoop(ctx context.Context, loop observe.LoopFound) {
	loop.Reconciler = r.name
	r.config.Hub().Report(ctx, &loop)
}

// hooks are the user's functions that run before and after each request.
type hooks struct {
	before func(ctx context.Context, req Request) (context.Context, Result, error)
	after  func(ctx context.Context, req Request, res Result, err error) (Result, error)
}

// call runs do between the hooks. An error from before ends the request.
func (h hooks) call(
	ctx context.Context, req Request, do func(ctx context.Context) (Result, error),
) (Result, error) {
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

// resourceTypeName returns the group and kind for log lines. If they are unknown, it returns the type name.
func resourceTypeName(config Config, resourceType client.Object) string {
	if config.Client != nil && !nilcheck.IsNilPointer(resourceType) {
		if gvk, err := config.GroupVersionKindFor(resourceType); err == nil {
			return gvk.GroupKind().String()
		}
	}
	return typeName(resourceType)
}

// resourceName returns the kind of a resource. The default name of its reconciler contains it.
func resourceName(config Config, resourceType client.Object) string {
	if isGeneric(resourceType) && config.Client != nil {
		if gvk, err := config.GroupVersionKindFor(resourceType); err == nil {
			return gvk.Kind
		}
	}
	return typeName(resourceType)
}

// describe describes what all roots share.
func (r root) describe(n *graph.Node, w *watched) {
	n.Root(schemeOf(r.config), r.resourceType, w.registered())
	n.Step(r.name)
	n.ReadsResource()
	n.Events()
	if r.config.Shard != nil {
		n.PatchesResource()
	}
}

// schemeOf returns nil for a config without a client.
func schemeOf(config Config) *runtime.Scheme {
	if config.Client == nil {
		return nil
	}
	return config.Scheme()
}

// applyDefaults sets the defaults of a resource with the first interface that the resource implements.
func applyDefaults[T client.Object](ctx context.Context, resource T) error {
	switch resource := any(resource).(type) {
	case validation.Defaulter:
		return resource.Default(ctx)
	case interface{ Default() }:
		resource.Default()
		return nil
	}
	switch defaulter := any(resource).(type) {
	case admission.Defaulter[T]:
		return defaulter.Default(ctx, resource)
	case admission.Defaulter[runtime.Object]:
		return defaulter.Default(ctx, resource)
	}
	return nil
}

// enterLoop returns what hot loops mean for a request: its delay, and whether it is inspected.
func (r root) enterLoop(ctx context.Context, requests *requests, req Request) hotloop.Entry {
	if requests.loops.Idle() {
		return hotloop.Entry{}
	}
	entry := requests.loops.Enter(req, func(look hotloop.Look) bool {
		return r.changedByOthers(ctx, req, requests.step.of(r).resource(req), look)
	})
	if entry.Wait > 0 {
		r.reportDeferred(ctx, observe.DeferLoop)
		requests.looping.delayed(r.config, req)
	}
	return entry
}

// changedByOthers reports whether another client has changed the resource or an object that its last reconciles read.
// Objects that the reconciles wrote do not count: two clients that revert each other's changes are also a hot loop.
func (r root) changedByOthers(ctx context.Context, req Request, resource guard.Object, look hotloop.Look) bool {
	current := empty.Like(r.resourceType)
	err := r.config.Get(ctx, req.NamespacedName, current)
	if client.IgnoreNotFound(err) != nil {
		return true // the request returns the error
	}
	if exists := err == nil; exists != look.Existed && !look.Ours(resource) {
		return true
	}
	return !look.AnyGeneration && current.GetGeneration() > look.Generation || look.Versions.Changed(ctx, look.Ours)
}

// leaveLoop detects a hot loop after a request of a controller and reports it. A failed request is not part of a hot
// loop, because failures have their own back-off.
func (r *request) leaveLoop(ctx context.Context, root root, result Result, err error) {
	if !r.findsLoops {
		return
	}
	r.compareWrites(ctx, root)
	if err != nil {
		return
	}
	loop := r.requests.loops.Leave(r.scope.request, r.reconciled(root, result))
	if loop == nil {
		return
	}
	repeats := r.requests.loops.Repetitions(r.scope.request, &r.journal, r.started)
	if path, after := r.requeues.shortest(); after > 0 {
		repeats = append(repeats, fmt.Sprintf("%s returns RequeueAfter %s", path, after))
	}
	root.reportLoop(ctx, observe.LoopFound{
		Cause: observe.LoopSelf, Reconciles: loop.Reconciles, Within: loop.Within, Repeats: repeats,
	})
	within := loop.Within.Round(time.Millisecond).String()
	logr.FromContextOrDiscard(ctx).Info("hot loop: each reconcile triggers the next one, further reconciles are delayed",
		"reconciles", loop.Reconciles, "within", within, "repeats", repeats)
	r.announceLoop(root, reasonHotLoop, fmt.Sprintf("Reconciled %d times in %s, each reconcile triggered the next one; "+
		"further reconciles are delayed. %s", loop.Reconciles, within, strings.Join(repeats, "; ")))
}

// announceLoop records an event about a hot loop on the resource, and its condition if the user asks for one.
func (r *request) announceLoop(root root, reason, text string) {
	text = truncate(text)
	r.requests.looping.set(root.config, r.scope.request, reason, text)
	if r.resource != nil {
		root.config.recorder().Event(r.resource, corev1.EventTypeWarning, reason, text)
	}
}

// reconciled describes the request for the detection of hot loops.
func (r *request) reconciled(root root, result Result) hotloop.Reconcile {
	return hotloop.Reconcile{
		Started: r.started, Generation: r.generation, RequeueAfter: result.RequeueAfter, Journal: &r.journal,
		Resource: r.requests.step.of(root).resource(r.scope.request), Exists: r.resource != nil,
	}
}

// requeues is an observer that records the step with the shortest requeue.
type requeues struct {
	mu    sync.Mutex
	path  string
	after time.Duration
}

var _ step.Observer = (*requeues)(nil)

func (r *requeues) StepStarted(ctx context.Context, _ step.Started) context.Context { return ctx }

func (r *requeues) StepFinished(_ context.Context, finished step.Finished) {
	after := finished.Result.RequeueAfter
	if after <= 0 || after >= hotloop.Short {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Enclosing steps return the same result. Keep the innermost step, which finishes first.
	if r.after == 0 || after < r.after {
		r.path, r.after = strings.Join(finished.Path, "."), after
	}
}

// shortest returns the step with the shortest requeue. There is none if r is nil.
func (r *requeues) shortest() (path string, after time.Duration) {
	if r == nil {
		return "", 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.path, r.after
}

// loopConditionTime is the time after the last delay for which a resource has the condition of a hot loop.
const loopConditionTime = time.Hour

// Reasons of events and conditions about hot loops.
const (
	reasonHotLoop       = "HotLoop"
	reasonFieldConflict = "FieldConflict"
)

// loopConditions holds the conditions of resources in hot loops. It is empty unless Config.LoopCondition is set. The
// zero value is ready to use.
type loopConditions struct {
	mu    sync.Mutex
	known map[Request]loopCondition
}

type loopCondition struct {
	reason, message string
	until           time.Time
}

// set records that the resource is in a hot loop. It drops the loops of other resources that have ended.
func (l *loopConditions) set(config Config, req Request, reason, message string) {
	if config.LoopCondition == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for other, known := range l.known {
		if now.After(known.until) {
			delete(l.known, other)
		}
	}
	if l.known == nil {
		l.known = map[Request]loopCondition{}
	}
	l.known[req] = loopCondition{reason: reason, message: message, until: now.Add(loopConditionTime)}
}

// delayed records that the hot loop of a resource goes on.
func (l *loopConditions) delayed(config Config, req Request) {
	if config.LoopCondition == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.known[req]; ok {
		known.until = time.Now().Add(loopConditionTime)
		l.known[req] = known
	}
}

// get returns the current hot loop of a resource, and the time until it ends.
func (l *loopConditions) get(config Config, req Request) (known loopCondition, remaining time.Duration) {
	if config.LoopCondition == "" {
		return loopCondition{}, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known = l.known[req]
	return known, max(0, time.Until(known.until))
}

// requeue returns the result of a request that did not fail. A resource in a hot loop is requeued when its condition is
// due to be removed.
func (l *loopConditions) requeue(config Config, req Request, result Result) Result {
	_, remaining := l.get(config, req)
	if remaining > 0 && !result.Requeue && //nolint:staticcheck // reconcilers still set it
		(result.RequeueAfter == 0 || result.RequeueAfter > remaining) {
		result.RequeueAfter = remaining
	}
	return result
}

// setLoopCondition sets the condition of a resource in a hot loop, or removes it.
func (s *statusType) setLoopCondition(obj client.Object, config Config, loops *loopConditions, req Request) {
	conditions := s.Conditions(obj)
	if config.LoopCondition == "" || conditions == nil {
		return
	}
	if loop, remaining := loops.get(config, req); remaining > 0 {
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: config.LoopCondition, Status: metav1.ConditionTrue, Reason: loop.reason, Message: loop.message,
		})
	} else if meta.FindStatusCondition(*conditions, config.LoopCondition) != nil {
		meta.RemoveStatusCondition(conditions, config.LoopCondition)
	}
}
