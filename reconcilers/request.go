// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"trueup.dev/internal/engine/carried"
	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/hotloop"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
)

// scope is the context value that a root reconciler sets. One context value holds all fields. The Stash… functions put
// a changed copy on a derived context, so that the caller's context does not change.
type scope struct {
	request              Request
	config               *Config
	originalConfig       *Config
	resourceType         client.Object
	originalResourceType client.Object
	// single reports whether the root reconciles only the resource of its request.
	single bool
	// controller is the name of the root reconciler, or "".
	controller string
	// uid is the UID of the reconciled resource. It is "" until the UID is known.
	uid               types.UID
	additionalConfigs map[string]Config
	// of is the request of a root reconciler. It is nil outside of them.
	of *request
	// caller is the context that the webhook was called with. It is nil outside of webhooks, see [scope.requestErr].
	caller *context.Context
	// watched holds the kinds that the controller watches. It is nil outside of root reconcilers with a controller.
	watched *watched
	// stored has what depends on whether the status is stored. It is nil if nothing stores the status.
	stored *onStored
	// inventory has the children of the enclosing [Prune]. It is nil without one.
	inventory *inventory
	// stepRun is the run of the innermost step of [Steps]. It is nil outside of Steps.
	stepRun *stepRun
	// held is set if the innermost [WithFinalizer] must keep its finalizer. It is nil unless one may be removed.
	held *atomic.Bool
}

type scopeKey struct{}

func scopeFrom(ctx context.Context) scope {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return *s
	}
	return scope{}
}

func (s scope) onto(ctx context.Context) context.Context {
	return context.WithValue(ctx, scopeKey{}, &s)
}

// ontoRoot puts the scope on the context with which a root reconciler is set up. It keeps the additional configs of the
// caller.
func (s *scope) ontoRoot(ctx context.Context) context.Context {
	s.additionalConfigs = scopeFrom(ctx).additionalConfigs
	return context.WithValue(ctx, scopeKey{}, s)
}

// requestErr returns the error of the context that the root reconciler or the webhook was called with, or of ctx
// outside of them.
func (s *scope) requestErr(ctx context.Context) error {
	switch {
	case s.caller != nil:
		return (*s.caller).Err()
	case s.of != nil:
		return s.of.Err()
	}
	return ctx.Err()
}

// requestFrom returns the request of a root reconciler, or nil outside of them.
func requestFrom(ctx context.Context) *request {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return s.of
	}
	return nil
}

// journalFrom returns the journal of the writes of the request, or nil outside of controllers.
func journalFrom(ctx context.Context) *guard.Journal {
	if r := requestFrom(ctx); r != nil && (r.guarded || r.findsLoops) {
		return &r.journal
	}
	return nil
}

// StashRequest puts the reconcile request on the context.
func StashRequest(ctx context.Context, req Request) context.Context {
	s := scopeFrom(ctx)
	s.request = req
	return s.onto(ctx)
}

// RetrieveRequest returns the reconcile request from the context, or a zero request if the context has none.
func RetrieveRequest(ctx context.Context) Request {
	return scopeFrom(ctx).request
}

// StashConfig puts the current config on the context. Subreconcilers use it for everything except the reconciled
// resource.
func StashConfig(ctx context.Context, config Config) context.Context {
	s := scopeFrom(ctx)
	s.config = &config
	return s.onto(ctx)
}

var (
	errMissingConfig = errors.New(
		"config must exist on the context. Check that the context is from a ResourceReconciler or WithConfig",
	)
	errMissingOriginalConfig = errors.New(
		"resource config must exist on the context. Check that the context is from a ResourceReconciler",
	)
)

// RetrieveConfig returns the current config from the context. It returns an error if the context does not come from a
// root reconciler or [StashConfig].
func RetrieveConfig(ctx context.Context) (Config, error) {
	if config := scopeFrom(ctx).config; config != nil {
		return *config, nil
	}
	return Config{}, errMissingConfig
}

// RetrieveConfigOrDie is like [RetrieveConfig] but panics on an error.
func RetrieveConfigOrDie(ctx context.Context) Config {
	return orDie(RetrieveConfig(ctx))
}

// StashOriginalConfig puts the config that loaded the reconciled resource on the context. Reconcilers that change the
// current config do not change it.
func StashOriginalConfig(ctx context.Context, resourceConfig Config) context.Context {
	s := scopeFrom(ctx)
	s.originalConfig = &resourceConfig
	return s.onto(ctx)
}

// RetrieveOriginalConfig returns the config that loaded the reconciled resource. It returns an error if the context
// does not come from a root reconciler or [StashOriginalConfig].
func RetrieveOriginalConfig(ctx context.Context) (Config, error) {
	if config := scopeFrom(ctx).originalConfig; config != nil {
		return *config, nil
	}
	return Config{}, errMissingOriginalConfig
}

// RetrieveOriginalConfigOrDie is like [RetrieveOriginalConfig] but panics on an error.
func RetrieveOriginalConfigOrDie(ctx context.Context) Config {
	return orDie(RetrieveOriginalConfig(ctx))
}

func orDie(config Config, err error) Config {
	if err != nil {
		panic(err)
	}
	return config
}

// StashResourceType puts the current type of the resource on the context. It differs from the original type below a
// [CastResource].
func StashResourceType(ctx context.Context, currentType client.Object) context.Context {
	s := scopeFrom(ctx)
	s.resourceType = currentType
	return s.onto(ctx)
}

// RetrieveResourceType returns the current type of the resource, or nil if the context has none.
func RetrieveResourceType(ctx context.Context) client.Object {
	return scopeFrom(ctx).resourceType
}

// StashOriginalResourceType puts the type with which the resource was loaded on the context.
func StashOriginalResourceType(ctx context.Context, resourceType client.Object) context.Context {
	s := scopeFrom(ctx)
	s.originalResourceType = resourceType
	return s.onto(ctx)
}

// RetrieveOriginalResourceType returns the type with which the resource was loaded, or nil if the context has none.
func RetrieveOriginalResourceType(ctx context.Context) client.Object {
	return scopeFrom(ctx).originalResourceType
}

// StashAdditionalConfigs puts additional configs, by name, on the context. They are intended for tests of reconcilers
// that use several configs.
func StashAdditionalConfigs(ctx context.Context, additionalConfigs map[string]Config) context.Context {
	s := scopeFrom(ctx)
	s.additionalConfigs = additionalConfigs
	return s.onto(ctx)
}

// RetrieveAdditionalConfigs returns the additional configs from the context, or an empty map if the context has none.
func RetrieveAdditionalConfigs(ctx context.Context) map[string]Config {
	if configs := scopeFrom(ctx).additionalConfigs; configs != nil {
		return configs
	}
	return map[string]Config{}
}

// requests holds the state that a root reconciler keeps between requests. The zero value is ready to use. It is safe
// for concurrent use.
type requests struct {
	step    rootStep
	gate    guard.Gate
	loops   hotloop.Detector
	looping loopConditions
	halts   halts
	retries reflectedRetries
	// failures has the number of consecutive failures.
	failures perRequest[int]
}

// rootStep is the step of a root reconciler. It is created on the first request.
type rootStep struct {
	once sync.Once
	step.Node
	// object is the kind of the resource in journals. It is empty without a guard.
	object guard.Object
	// kind is the kind of the resource. It is empty if it is unknown.
	kind schema.GroupVersionKind
}

func (s *rootStep) of(r root) *rootStep {
	s.once.Do(func() {
		if r.config.Client != nil && !nilcheck.IsNilPointer(r.resourceType) {
			s.kind, _ = r.config.GroupVersionKindFor(r.resourceType)
		}
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

// request is the state of one request to a root reconciler. It is also the context of the request, so that all its
// values need one allocation, which has few bytes: what few requests need is behind pointers.
type request struct {
	context.Context //nolint:containedctx // it is a context

	scope     scope
	journal   guard.Journal
	waits     waits
	reflected reflected
	applies   applies
	trace     step.Trace
	stored    onStored
	stash     carried.Stash
	// requests is the state that the root reconciler keeps between requests.
	requests *requests
	// byController reports whether a controller made the request. Otherwise a test made it, and users compare its logs
	// and events.
	byController bool
	// guarded reports whether the request waits for the caches. findsLoops reports whether hot loops are detected.
	guarded, findsLoops bool
	// completed reports whether the tree of reconcilers succeeded.
	completed bool
	// resource is the reconciled resource. It is nil until the resource was fetched.
	resource client.Object
	// generation is the generation of the resource when it was fetched. Writes of the request change the generation in
	// resource.
	generation int64
	// requeues records requeues of a request that may be in a hot loop. It is nil for others.
	requeues *requeues
	started  time.Time
	// now is the time for package time.
	now *time.Time
}

// Value returns what belongs to the request.
func (r *request) Value(key any) any {
	switch key.(type) {
	case scopeKey:
		return &r.scope
	case step.TraceKey:
		return &r.trace
	case carried.StashKey:
		return &r.stash
	case carried.NowKey:
		return r.now
	}
	return r.Context.Value(key)
}

// withoutLease is how long a request waits if another process may hold the lease of the manager. The manager renews the
// lease or stops.
const withoutLease = time.Second

// beginRequest prepares the context of one request. If the caches have not yet received the previous writes for the
// request, or another process may hold the lease, wait is greater than 0 and the returned request is nil.
func (r root) beginRequest(
	ctx context.Context, requests *requests, scope scope, byController bool,
) (_ context.Context, this *request, wait time.Duration) {
	this = &request{
		Context: ctx, scope: scope, requests: requests, byController: byController,
		trace: step.Trace{Ignore: isQuiet, Explain: causeOf}, started: time.Now(),
	}
	if byController && r.config.lease.Check(this.started) != nil {
		r.reportDeferred(ctx, observe.DeferLease)
		return ctx, nil, withoutLease
	}
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
	switch {
	case loop.InspectWrites && !loop.Inspect:
		this.journal.InspectWrites()
	case loop.Inspect:
		this.journal.Inspect()
		this.requeues = &requeues{}
		this.Context = step.WithObserver(ctx, this.requeues)
	}
	this.scope.of, this.scope.additionalConfigs = this, scopeFrom(ctx).additionalConfigs
	this.now = &this.started
	if pinned, ok := ctx.Value(carried.NowKey{}).(*time.Time); ok {
		this.now = pinned
	}
	return this, this, 0
}

// inController reports whether a controller made the request, and not a test that calls a reconciler directly.
func inController(ctx context.Context) bool {
	r := requestFrom(ctx)
	return r != nil && r.byController
}

// run executes do as the step of the root reconciler and settles the outcome.
func (r *request) run(
	ctx context.Context, root root, do func(ctx context.Context, _ client.Object) (Result, error),
) (Result, error) {
	defer r.end(ctx)
	result, err := step.Run(ctx, r.requests.step.of(root).Node, root.resourceType, do)
	r.holdReferences(root, err)
	failed := r.failed(result, err)
	result, err = r.settle(ctx, root, result, err)
	result = r.lowered(result, failed)
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
	kind := r.requests.step.of(root).kind
	r.scope.originalConfig.hold(kind, root.resourceType, r.scope.request, renewedSince)
}

// failed reports whether a request has failed, or is retried with back-off because it has halted.
func (r *request) failed(result Result, err error) bool {
	if errors.Is(err, ErrHaltSubReconcilers) && !errors.Is(err, ErrDurable) && result.RequeueAfter > 0 {
		return r.reflected.failed.Load() // it polls
	}
	return isFailure(err) || r.reflected.failed.Load()
}

// isFailure reports whether err says more than when to call the reconciler again.
func isFailure(err error) bool {
	switch err := err.(type) { //nolint:errorlint // joined errors are taken apart
	case nil:
		return false
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), isFailure)
	}
	return err != ErrRetryAfter //nolint:errorlint // an error that wraps it has a cause
}

// keepsPriority is the number of consecutive failures whose retry has the priority of the request.
const keepsPriority = 1

// lowered returns the result of a request. If the resource keeps failing, its retry has the priority of a resync,
// unless a reconciler has set another one: many resources that fail must not delay changes of users. The first retry
// may only repeat a conflict. A change of the resource, or of what it depends on, raises the priority of the retry.
func (r *request) lowered(result Result, failed bool) Result {
	switch {
	case !r.byController:
		return result
	case !failed:
		r.requests.failures.reset(r.scope.request)
		return result
	}
	low := false
	r.requests.failures.change(r.scope.request, func(failures *int) {
		*failures++
		low = *failures > keepsPriority
	})
	if low && result.Priority == nil {
		result.Priority = new(handler.LowPriority)
	}
	return result
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
	r.resource, r.generation, r.scope.uid = resource, resource.GetGeneration(), resource.GetUID()
	noteUID(ctx, r.scope.uid) // a hook may have put another scope on the context
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
		Namespace: run.Object.Namespace, Name: run.Object.Name, UID: r.scope.uid,
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

// onStored holds functions to call when the root reconciler has stored the status of the resource, or has nothing to
// store. The zero value is ready to use. It is safe for concurrent use.
type onStored struct {
	mu   sync.Mutex
	todo func()
	// deleting reports whether the status must be stored although the resource is being deleted.
	deleting bool
}

// evenIfDeleting makes the root reconciler store the status although the resource is being deleted. It does nothing on
// a nil receiver.
func (o *onStored) evenIfDeleting() {
	if o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.deleting = true
	}
}

// storesDeleting reports whether the status of a resource that is being deleted must be stored. After its last
// finalizer was removed, the resource does not exist.
func (o *onStored) storesDeleting(resource client.Object) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.deleting && len(resource.GetFinalizers()) > 0
}

// await makes [whenStored] wait for this request. The root reconciler calls it before it calls nested reconcilers.
func (o *onStored) await(ctx context.Context) {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		s.stored = o
	}
}

// confirm calls the functions. It does nothing on a nil receiver.
func (o *onStored) confirm() {
	if o == nil {
		return
	}
	o.mu.Lock()
	todo := o.todo
	o.todo = nil
	o.mu.Unlock()
	if todo != nil {
		todo()
	}
}

// whenStored calls do after the status of the resource has been stored, and never if that fails. A step that skips work
// because it was done before must not rely on a status that exists only in memory. Without a root reconciler that
// stores the status, it calls do at once.
func whenStored(ctx context.Context, do func()) {
	o := scopeFrom(ctx).stored
	if o == nil {
		do()
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if before := o.todo; before != nil {
		o.todo = func() { before(); do() }
		return
	}
	o.todo = do
}
