// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/duck"
	"trueup.dev/graph"
	"trueup.dev/internal/engine/observation"
	"trueup.dev/internal/engine/registration"
	"trueup.dev/internal/engine/served"
	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/objects/servedstatus"
	"trueup.dev/validation"
)

var (
	_ reconcile.Reconciler = (*ResourceReconciler[client.Object])(nil)
	_ validation.Validator = (*ResourceReconciler[client.Object])(nil)
)

// ResourceReconciler reconciles all resources of a kind. It is the root of a tree of reconcilers. It does the work that
// all controllers share and delegates the rest to Reconciler.
//
// For each request it fetches the resource, applies its defaults, initializes the conditions of its status and runs
// Reconciler. It then sets the observed generation and writes the status if the status has changed. Conditions whose
// status is unchanged keep their transition time. The context of nested reconcilers contains the request, the config
// and a new stash.
//
// Events on the resource: Warning StatusUpdateFailed and, with StatusEvents, Normal StatusUpdated. The status of duck
// types is patched, with the events StatusPatchFailed and StatusPatched. In a controller, an error without an event of
// its own is recorded as the Warning event ReconcileFailed, with the step and the object.
//
// RBAC, with the group and the plural of the kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>/status,verbs=get;update;patch
//	// +kubebuilder:rbac:groups=core,resources=events,verbs=create;patch
type ResourceReconciler[Type client.Object] struct {
	// Name identifies this reconciler in logs. A name that is set also names the controller and must then be unique
	// within a process. Defaults to `<Type>ResourceReconciler`, and to the lower-case kind for the controller.
	Name string

	// Setup changes the controller that is being built: additional watches, its name, its options. It is called before
	// Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// SetupForOptions are options for the watch of the resource, for example predicates. Optional.
	SetupForOptions []builder.ForOption

	// Type is the kind of the resource. Defaults to the type parameter; required for unstructured objects and duck types.
	Type Type

	// WhileServed makes the watch of the resource wait until the API server serves its kind, for example a kind of a
	// CustomResourceDefinition that is installed later. The manager starts without the kind. When the kind is no longer
	// served, its informer is stopped, see [WhileServed]. Until then, finalizers can be removed. Defaults to false: the
	// manager stops if the kind is not served.
	WhileServed bool

	// SkipStatusUpdate disables writing the status. Defaults to false: the controller then logs an error when it starts if
	// the API server does not serve the status subresource of the kind, which it asks with one discovery request.
	SkipStatusUpdate bool

	// SyncStatusDuringFinalization also writes the status while the resource is being deleted. Defaults to false: it is
	// then only written for [Steps], which say what their removal waits for.
	SyncStatusDuringFinalization bool

	// StatusEvents records an event for each status that a controller writes. Most of these events repeat the status. A
	// direct call of Reconcile, for example in a test, always records them. Failures are always recorded. Defaults to
	// false.
	StatusEvents bool

	// Reconciler reconciles the resource, usually a [Sequence]. Required.
	Reconciler SubReconciler[Type]

	// BeforeReconcile is called first for each request, before the resource is fetched. If it returns a context, the
	// request uses that context. An error ends the request. Optional.
	BeforeReconcile func(ctx context.Context, req Request) (context.Context, Result, error)

	// AfterReconcile is called last for each request and may change the outcome. Optional.
	AfterReconcile func(ctx context.Context, req Request, res Result, err error) (Result, error)

	// SkipRequest reports whether to ignore a request. Optional.
	SkipRequest func(ctx context.Context, req Request) bool

	// ReconcileAbsent is called if the resource of a request does not exist, for example to release in-memory state of
	// a deleted resource. Use [WithFinalizer] for cleanup that must not be missed: a controller that is not running
	// misses the deletion. With Config.Shard, it is not called for a resource that another replica has. Optional.
	ReconcileAbsent func(ctx context.Context, req Request) (Result, error)

	// SkipResource reports whether to ignore a resource. Optional.
	SkipResource func(ctx context.Context, resource Type) bool

	// Config is the config for the cluster of the resource, see [NewConfig]. Required.
	Config Config

	lazyInit sync.Once
	named    bool
	status   *statusType
	admitted admittedStatuses
	watched  watched
	requests requests
	// cached is the kind of the resource if it is read from the cache of a manager without copying.
	cached schema.GroupVersionKind
	// unwritten finds changes that are not written.
	unwritten unwritten
}

func (r *ResourceReconciler[T]) init() {
	r.lazyInit.Do(func() {
		if nilcheck.IsNilPointer(r.Type) {
			r.Type = newEmpty[T]()
		}
		r.named = r.Name != ""
		if !r.named {
			r.Name = fmt.Sprintf("%sResourceReconciler", resourceName(r.Config, r.Type))
		}
		if !nilcheck.IsNilPointer(r.Type) {
			r.status = newStatusType(r.Type)
		}
	})
}

// SetupWithManager adds a controller for the resource to the manager.
func (r *ResourceReconciler[T]) SetupWithManager(ctx context.Context, mgr Manager) error {
	_, err := r.setUp(ctx, mgr, false)
	return err
}

// SetupWithManagerYieldingController is like SetupWithManager and returns the controller, so that watches can be added
// later.
func (r *ResourceReconciler[T]) SetupWithManagerYieldingController(
	ctx context.Context, mgr Manager,
) (controller.Controller, error) {
	return r.setUp(ctx, mgr, true)
}

func (r *ResourceReconciler[T]) setUp(ctx context.Context, mgr Manager, yields bool) (controller.Controller, error) {
	r.init()
	r.watched.begin(r.Name)
	root := r.root()
	scope := r.scope(Request{})
	ctx = withDeclarations(scope.ontoRoot(root.logger(ctx)))
	validating, pass := setupcheck.Begin(ctx)
	if err := root.validate(validating, r); err != nil {
		return nil, err
	}
	if r.Config.cache != nil && !duck.IsDuck(r.Type, r.Config.Scheme()) {
		// If the kind is unknown, the builder returns a better error.
		r.cached, _ = r.Config.GroupVersionKindFor(r.Type)
	}
	bldr := root.builder(mgr, r.SetupForOptions)
	ctx, record := registration.Begin(ctx, bldr)
	r.checkStatus(ctx, bldr)
	if r.WhileServed {
		var err error
		if mgr, err = root.whileServed(ctx, mgr, bldr, served.ToFinalize); err != nil {
			return nil, err
		}
	}
	if r.Setup != nil {
		if err := r.Setup(ctx, mgr, bldr); err != nil {
			return nil, err
		}
	}
	if err := setUpNested(ctx, mgr, bldr, r.Reconciler); err != nil {
		return nil, err
	}
	if err := validateRest(pass); err != nil {
		return nil, err
	}
	withdraw, err := root.claimChildren(ctx, mgr, &r.requests, Request{}, r.SkipRequest != nil || r.SkipResource != nil)
	if err != nil {
		return nil, err
	}
	built, err := r.watched.build(ctx, mgr, bldr, record, yields, r)
	if err != nil {
		withdraw()
	}
	return built, err
}

// checkStatus makes the controller log at its start if the status that it writes is not served. The Go type of an
// unstructured resource does not say whether the resource has a status.
func (r *ResourceReconciler[T]) checkStatus(ctx context.Context, bldr *Builder) {
	if r.SkipStatusUpdate || r.status.Index == nil || r.Config.Discovery == nil {
		return
	}
	if gvk, err := r.Config.GroupVersionKindFor(r.Type); err == nil {
		bldr.WatchesRawSource(&servedstatus.Source{
			Discovery: r.Config.Discovery, Kind: gvk, Log: logr.FromContextOrDiscard(ctx),
		})
	}
}

func (r *ResourceReconciler[T]) root() root {
	return root{kind: "ResourceReconciler", name: r.Name, named: r.named, resourceType: r.Type, config: r.Config}
}

// scope returns the values that the context of nested reconcilers contains.
func (r *ResourceReconciler[T]) scope(req Request) scope {
	return scope{
		request: req,
		config:  &r.Config, originalConfig: &r.Config,
		resourceType: r.Type, originalResourceType: r.Type,
		watched: &r.watched, controller: r.Name,
	}
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler. It logs which fields
// and methods of the status are missing.
func (r *ResourceReconciler[T]) Validate(ctx context.Context) error {
	r.init()
	request := RetrieveRequest(ctx)
	ctx = r.scope(request).onto(ctx)

	problems := problems{}
	problems.kind(fmt.Sprintf("ResourceReconciler %q", r.Name), "Type", r.Type)
	if nilcheck.IsNilPointer(r.Reconciler) {
		problems.add("ResourceReconciler %q must define Reconciler", r.Name)
	}
	problems.nested(ctx, r.Reconciler, "ResourceReconciler %q must have a valid Reconciler", r.Name)
	if r.Config.LoopCondition != "" && !r.status.HasConditions() {
		problems.add("ResourceReconciler %q must have a type with Status.Conditions of type []metav1.Condition to use "+
			"Config.LoopCondition", r.Name)
	}
	if r.Config.Shard != nil && r.Config.Client != nil && !nilcheck.IsNilPointer(r.Type) && !r.Config.divides(r.Type) {
		problems.add("ResourceReconciler %q must have a type that is one of the Kinds of Config.Shard, or no Config.Shard",
			r.Name)
	}
	if err := problems.err(); err != nil {
		return err
	}
	r.adviseOnStatus(logr.FromContextOrDiscard(ctx))
	return nil
}

// DescribeTo implements [graph.Describer].
func (r *ResourceReconciler[T]) DescribeTo(n *graph.Node) {
	r.init()
	r.root().describe(n, &r.watched)
	if !r.SkipStatusUpdate {
		n.Status()
	}
	n.Nest("Reconciler", r.Reconciler)
}

func (r *ResourceReconciler[T]) adviseOnStatus(log logr.Logger) {
	s := r.status
	if s.unstructured {
		return
	}
	if s.Index == nil {
		log.Info("resource missing status field, operations related to status will be skipped")
		return
	}
	if s.IsPointer {
		log.Info("resource status is nilable, status is typically a struct")
	}
	if !s.HasObservedGeneration() {
		log.Info("resource status missing ObservedGeneration field of type int64, generation will not be managed")
	}
	switch {
	case !s.initialize:
		log.Info("resource status missing InitializeConditions(context.Context) method, " +
			"conditions will not be auto-initialized")
	case !s.withContext:
		log.Info("resource status InitializeConditions() method is deprecated, use InitializeConditions(context.Context)")
	}
	if !s.HasConditions() {
		log.Info("resource status is missing field Conditions of type []metav1.Condition, " +
			"condition timestamps will not be managed")
	}
}

// Reconcile reconciles the resource that the request names.
//
// In a controller, it returns the requeue that reconcilers request and sets the observedGeneration of conditions.
//
// In a direct call, for example in a test, it does not change conditions, and it returns an empty result after it has
// written the status. Tests of earlier versions expect the empty result, because the watch event of the write triggers
// the next request. A controller does not depend on this event, because a predicate may filter it out.
func (r *ResourceReconciler[T]) Reconcile(ctx context.Context, req Request) (Result, error) {
	return r.reconcile(ctx, req, controller.ReconcileIDFromContext(ctx) != "")
}

func (r *ResourceReconciler[T]) reconcile(ctx context.Context, req Request, byController bool) (Result, error) {
	r.init()
	root := r.root()
	if byController {
		r.watched.warnNotSetUp(ctx, root)
	}
	if ours, result, err := root.admit(ctx, req, !r.cached.Empty()); !ours || err != nil {
		return result, err
	}
	ctx, this, wait := root.beginRequest(ctx, &r.requests, r.scope(req), byController)
	if wait > 0 {
		return Result{RequeueAfter: wait}, nil
	}
	return this.run(ctx, root, func(ctx context.Context, _ client.Object) (Result, error) {
		return r.request(ctx, req, this)
	})
}

// hasOwnTime reports whether a quiet error uses the RequeueAfter of its result.
func hasOwnTime(err error) bool {
	return errors.Is(err, ErrHaltSubReconcilers) || errors.Is(err, ErrRetryAfter)
}

func (r *ResourceReconciler[T]) request(ctx context.Context, req Request, this *request) (Result, error) {
	if r.SkipRequest != nil && r.SkipRequest(ctx, req) {
		return Result{}, nil
	}
	around := hooks{before: r.BeforeReconcile, after: r.AfterReconcile}
	return around.call(ctx, req, func(ctx context.Context) (Result, error) {
		return r.fetchAndReconcile(ctx, req, this)
	})
}

func (r *ResourceReconciler[T]) fetchAndReconcile(ctx context.Context, req Request, this *request) (Result, error) {
	resource, original, err := r.fetch(ctx, req.NamespacedName)
	if err != nil {
		if apierrs.IsNotFound(err) || r.WhileServed && meta.IsNoMatchError(err) {
			return r.absent(ctx, req)
		}
		logUnlessQuiet(ctx, err, "unable to fetch resource")
		return Result{}, err
	}
	if r.Config.Shard != nil {
		// The resource may have been read from the API server, which also has the resources of other replicas.
		ours, result, err := r.Config.Shard.Admit(ctx, r.Config.Client, resource)
		switch {
		case err != nil || result.RequeueAfter > 0:
			return result, err
		case !ours:
			return r.absent(ctx, req)
		}
	}
	this.fetched(ctx, resource)
	if !r.SkipStatusUpdate {
		this.stored.await(ctx)
	}
	if err := applyDefaults(ctx, resource); err != nil {
		return Result{}, err
	}
	if r.SkipResource != nil && r.SkipResource(ctx, resource) {
		return Result{}, nil
	}

	var observation *observation.Observation
	if this.byController {
		ctx, observation = r.status.withGeneration(ctx, resource)
	}
	r.status.initializeConditions(ctx, resource)
	before := r.unwritten.before(ctx, resource, this.byController)
	result, err := r.reconcileResource(ctx, resource)
	r.unwritten.check(ctx, before, resource)
	this.completed = err == nil
	if r.SkipStatusUpdate {
		return result, err
	}
	if this.byController {
		r.status.mendConditions(resource)
	}
	r.status.setLoopCondition(resource, r.Config, &r.requests.looping, req)
	r.status.observeConditions(resource, original, observation, err == nil && !this.waits.leftOut.Load())
	r.status.keepTransitionTimes(resource, original)
	if !r.mustWriteStatus(ctx, resource, original, err) {
		if !errors.Is(err, ErrSkipStatusUpdate) {
			this.stored.confirm()
		}
		return result, err
	}
	result, err = r.writeStatus(ctx, this, resource, original, result, err)
	if !this.byController {
		result = Result{}
	}
	return result, err
}

// absent handles a resource that does not exist.
func (r *ResourceReconciler[T]) absent(ctx context.Context, req Request) (Result, error) {
	r.Config.forget(r.Type, req)
	if r.ReconcileAbsent == nil {
		return Result{}, nil
	}
	if elsewhere, err := r.isElsewhere(ctx, req); elsewhere || err != nil {
		return Result{}, err
	}
	return r.ReconcileAbsent(ctx, req)
}

// absentHandler is a reconciler that finds out itself whether another replica has a resource that the cache lacks.
type absentHandler interface {
	Absent(ctx context.Context, req Request) (Result, error)
}

// isElsewhere reports whether a resource exists that is not in the cache, because another replica has it.
func (r *ResourceReconciler[T]) isElsewhere(ctx context.Context, req Request) (bool, error) {
	if _, itself := any(r.Reconciler).(absentHandler); itself || r.Config.Shard == nil || r.Config.APIReader == nil {
		return false, nil
	}
	err := r.Config.APIReader.Get(ctx, req.NamespacedName, empty.Like(r.Type))
	return err == nil, client.IgnoreNotFound(err)
}

// fetch returns the resource and the original to compare it with, see asFetched. The caller must not change the
// original.
func (r *ResourceReconciler[T]) fetch(ctx context.Context, key client.ObjectKey) (resource, original T, err error) {
	resource = r.Type.DeepCopyObject().(T)
	if r.cached.Empty() {
		err = r.Config.Get(ctx, key, resource)
		if err != nil {
			return resource, original, err
		}
		return resource, r.asFetched(resource), nil
	}
	// Objects in the cache are never changed, so the original need not be a copy.
	original = resource
	if err := r.Config.Get(ctx, key, original, client.UnsafeDisableDeepCopy); err != nil {
		return resource, original, err
	}
	resource = original.DeepCopyObject().(T)
	nameKind(resource, r.cached)
	return resource, original, nil
}

// asFetched returns a copy of the parts of a resource that are needed to detect a changed status and to write it.
func (r *ResourceReconciler[T]) asFetched(resource T) T {
	if r.SkipStatusUpdate {
		return resource
	}
	if r.patchesStatus(resource) {
		return resource.DeepCopyObject().(T)
	}
	return r.status.snapshot(resource).(T)
}

// reconcileResource runs Reconciler.
func (r *ResourceReconciler[T]) reconcileResource(ctx context.Context, resource T) (Result, error) {
	if resource.GetDeletionTimestamp() != nil && len(resource.GetFinalizers()) == 0 {
		// No finalizer is left, so nothing needs to be cleaned up.
		return Result{}, nil
	}
	result, err := r.Reconciler.Reconcile(ctx, resource)
	if err == nil || errors.Is(err, ErrHaltSubReconcilers) {
		r.status.observeGeneration(resource)
	}
	return result, err
}

func (r *ResourceReconciler[T]) mustWriteStatus(ctx context.Context, resource, original T, err error) bool {
	if resource.GetDeletionTimestamp() != nil && !r.SyncStatusDuringFinalization &&
		!scopeFrom(ctx).stored.storesDeleting(resource) {
		return false
	}
	return !errors.Is(err, ErrSkipStatusUpdate) && !r.status.equal(resource, original) &&
		!r.admitted.isStored(ctx, r.Config, r.status, resource, original)
}

// writeStatus writes the status. It never hides a failure: if reconcilers returned an error that is not quiet, it
// returns the error although the status was written. The request is then retried with back-off, logged and counted.
func (r *ResourceReconciler[T]) writeStatus(
	ctx context.Context, this *request, resource, original T, result Result, reconcileErr error,
) (Result, error) {
	log := logr.FromContextOrDiscard(ctx)
	write := r.statusWriter(resource)
	if log.Enabled() {
		log.Info(write.doing, "diff", changes(log, r.status.of(original), r.status.of(resource)))
	}
	if isQuiet(reconcileErr) {
		if !hasOwnTime(reconcileErr) {
			result = withPriority(backOff, result)
		}
		reconcileErr = nil
	}

	requested := r.status.snapshot(resource)
	err := write.write(ctx, resource, original)
	switch {
	case err == nil:
		scopeFrom(ctx).stored.confirm()
		r.admitted.learn(r.status, requested, resource)
		if r.StatusEvents || !this.byController {
			r.Config.recorder().Event(resource, corev1.EventTypeNormal, write.succeeded, write.done)
		}
		return result, reconcileErr
	case apierrs.IsConflict(err) && !write.patch:
		// Another client wrote first. Its watch event triggers the next request, but a predicate may filter the event
		// out.
		log.Info("unable to update status, the resource has changed", "reason", err.Error())
		return withPriority(backOff, result), reconcileErr
	case apierrs.IsNotFound(err) && resource.GetDeletionTimestamp() != nil && len(resource.GetFinalizers()) == 0:
		// The resource was deleted when its last finalizer was removed.
		return result, reconcileErr
	case apierrs.IsNotFound(err) && this.byController:
		if err = r.explainNotFound(ctx, resource, err); err == nil {
			return result, reconcileErr // the resource was deleted during the request
		}
	case this.byController:
		err = r.writeRest(ctx, write, resource, original, err)
	}
	if reconcileErr == nil {
		reconcileErr = err
	} else {
		reconcileErr = errors.Join(err, reconcileErr)
	}
	logUnlessQuiet(ctx, err, write.unable)
	if !isShutdown(ctx) {
		r.Config.recorder().Eventf(resource, corev1.EventTypeWarning, write.failed, write.failure, err)
		step.Recorded(ctx, err)
	}
	return Result{}, reconcileErr
}

// statusWrite is a way to write a status, with its log messages and events.
type statusWrite[T client.Object] struct {
	patch           bool
	doing, unable   string
	succeeded, done string
	failed, failure string
	write           func(ctx context.Context, resource, original T) error
}

// writeRest writes a status without what the API server refused of it, and returns the refusal with the names of these
// fields.
func (r *ResourceReconciler[T]) writeRest(
	ctx context.Context, write statusWrite[T], resource, original T, refusal error,
) error {
	if !apierrs.IsInvalid(refusal) && !isTooLarge(refusal) {
		return refusal
	}
	reduced, fields, err := r.status.without(refusal, resource, original)
	if err != nil || len(fields) == 0 {
		return errors.Join(refusal, err)
	}
	if err := write.write(ctx, reduced.(T), original); err != nil {
		return errors.Join(refusal, err)
	}
	return fmt.Errorf("without %s, the rest was written: %w", strings.Join(fields, ", "), refusal)
}

// patchesStatus reports whether the status is patched. This applies to ducks: an update would remove the fields that
// the duck type does not have.
func (r *ResourceReconciler[T]) patchesStatus(resource T) bool {
	_, isUnstructured := any(resource).(*unstructured.Unstructured)
	return !isUnstructured && duck.IsDuck(resource, r.Config.Scheme())
}

func (r *ResourceReconciler[T]) statusWriter(resource T) statusWrite[T] {
	if !r.patchesStatus(resource) {
		return statusWrite[T]{
			doing: "updating status", unable: "unable to update status",
			succeeded: "StatusUpdated", done: "Updated status",
			failed: "StatusUpdateFailed", failure: "Failed to update status: %v",
			write: func(ctx context.Context, resource, _ T) error {
				return r.Config.Status().Update(ctx, resource)
			},
		}
	}
	return statusWrite[T]{
		patch: true,
		doing: "patching status", unable: "unable to patch status",
		succeeded: "StatusPatched", done: "Patched status",
		failed: "StatusPatchFailed", failure: "Failed to patch status: %v",
		write: func(ctx context.Context, resource, original T) error {
			return r.Config.Status().Patch(ctx, resource, client.MergeFrom(original))
		},
	}
}
