// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/registration"
	"trueup.dev/internal/engine/served"
	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
	rtime "trueup.dev/time"
	"trueup.dev/tracker"
	"trueup.dev/validation"
)

var (
	_ reconcile.Reconciler = (*AggregateReconciler[client.Object])(nil)
	_ validation.Validator = (*AggregateReconciler[client.Object])(nil)
)

// AggregateReconciler manages a single, named resource that is computed from other state. It is a root like
// [ResourceReconciler]. It manages its resource like a [ChildReconciler] manages a child: it creates a missing
// resource, corrects it, and deletes it when it is not desired. A resource that only other clients wrote, according to
// its managed fields, is not deleted: the Warning event NotMadeHere says so.
//
// For each request it fetches the resource, runs Reconciler to collect data, and passes the resource that
// DesiredResource returns to the object manager. It ignores a resource that is being deleted. The controller makes the
// first request when it starts, whether or not the resource exists.
//
// The reconciler does not write a status. The object manager records events on the resource. In a controller, an error
// without an event of its own is recorded as the Warning event ReconcileFailed, with the step and the object.
//
// RBAC, with the group and the plural of the kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;create;update;patch;delete
//	// +kubebuilder:rbac:groups=core,resources=events,verbs=create;patch
type AggregateReconciler[Type client.Object] struct {
	// Name identifies this reconciler in logs. A name that is set also names the controller and must then be unique
	// within a process. Defaults to `<Type>AggregateReconciler`, and to the lower-case kind for the controller.
	Name string

	// Setup changes the controller that is being built. It is called before Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// SetupForOptions are options for watching the resource itself. Optional.
	SetupForOptions []builder.ForOption

	// Type is the kind of the resource. Defaults to the type parameter; required for unstructured objects and duck types.
	Type Type

	// WhileServed makes the controller wait until the API server serves the kind of the resource, for example a kind of
	// a CustomResourceDefinition that is installed later. The manager starts without the kind. When the kind is no longer
	// served, its informer is stopped, and requests do nothing, see [WhileServed]. Defaults to false: the manager stops
	// if the kind is not served.
	WhileServed bool

	// Request names the resource. Requests for other resources are ignored. Required.
	Request Request

	// Reconciler collects the data for DesiredResource, usually in the stash. The resource is still managed if
	// Reconciler halts, but not if it returns [ErrDurable]. Defaults to an empty Sequence.
	Reconciler SubReconciler[Type]

	// DesiredResource returns the desired resource, or nil to delete it. Its argument is a copy of the current
	// resource, or a blank resource with its name if the resource does not exist. It may change and return the copy.
	// References that it tracks are discarded: track them in Reconciler. Defaults to the resource as Reconciler left
	// it.
	DesiredResource func(ctx context.Context, resource Type) (Type, error)

	// AggregateObjectManager creates, updates and deletes the resource. Either AggregateObjectManager or
	// MergeBeforeUpdate is required. With MergeBeforeUpdate, the reconciler uses an [UpdatingObjectManager].
	AggregateObjectManager ObjectManager[Type]

	// MergeBeforeUpdate, HarmonizeImmutableFields and Sanitize set the fields of the same names of an
	// [UpdatingObjectManager]. They replace AggregateObjectManager.
	MergeBeforeUpdate        func(current, desired Type)
	HarmonizeImmutableFields func(current, desired Type)
	Sanitize                 func(resource Type) any

	// BeforeReconcile is called first for each request. If it returns a context, the request uses that context. An
	// error ends the request. Optional.
	BeforeReconcile func(ctx context.Context, req Request) (context.Context, Result, error)

	// AfterReconcile is called last for each request and may change the outcome. Optional.
	AfterReconcile func(ctx context.Context, req Request, res Result, err error) (Result, error)

	// Config is the config for the cluster of the resource, see [NewConfig]. Required.
	Config Config

	lazyInit sync.Once
	named    bool
	defaults shorthand[Type]
	watched  watched
	requests requests
	// foreign are resources for which a warning was recorded.
	foreign perObject[struct{}]
}

func (r *AggregateReconciler[T]) init() {
	r.lazyInit.Do(func() {
		if nilcheck.IsNilPointer(r.Type) {
			r.Type = newEmpty[T]()
		}
		r.named = r.Name != ""
		if !r.named {
			r.Name = fmt.Sprintf("%sAggregateReconciler", typeName(r.Type))
		}
		if r.Reconciler == nil {
			r.Reconciler = Sequence[T]{}
		}
		if r.DesiredResource == nil {
			r.DesiredResource = func(_ context.Context, resource T) (T, error) { return resource, nil }
		}
		r.defaults = shorthand[T]{
			field: "AggregateObjectManager", verb: "define", given: !nilcheck.IsNilPointer(r.AggregateObjectManager),
			merge: r.MergeBeforeUpdate, harmonize: r.HarmonizeImmutableFields, sanitize: r.Sanitize,
		}
		if !r.defaults.given {
			r.AggregateObjectManager = r.defaults.manager(r.Type, false)
		}
	})
}

// SetupWithManager adds a controller for the resource to the manager.
func (r *AggregateReconciler[T]) SetupWithManager(ctx context.Context, mgr Manager) error {
	_, err := r.setUp(ctx, mgr, false)
	return err
}

// SetupWithManagerYieldingController is like SetupWithManager and returns the controller, so that watches can be added
// later.
func (r *AggregateReconciler[T]) SetupWithManagerYieldingController(
	ctx context.Context, mgr Manager,
) (controller.Controller, error) {
	return r.setUp(ctx, mgr, true)
}

func (r *AggregateReconciler[T]) setUp(ctx context.Context, mgr Manager, yields bool) (controller.Controller, error) {
	r.init()
	r.watched.begin(r.Name)
	root := r.root()
	scope := r.scope()
	ctx = withDeclarations(scope.ontoRoot(root.logger(ctx)))
	validating, pass := setupcheck.Begin(ctx)
	if err := root.validate(validating, r); err != nil {
		return nil, err
	}
	// Events of other resources do not wake the controller. Predicates that the user sets replace this predicate.
	ours := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return client.ObjectKeyFromObject(obj) == r.Request.NamespacedName
	})
	options := append([]builder.ForOption{builder.WithPredicates(ours)}, r.SetupForOptions...)
	bldr := root.builder(mgr, options)
	// A resource that does not exist has no watch event.
	bldr.WatchesRawSource(startSource(r.Request))
	ctx, record := registration.Begin(ctx, bldr)
	if r.WhileServed {
		var err error
		if mgr, err = root.whileServed(ctx, mgr, bldr, served.ToCreate); err != nil {
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
	if err := r.AggregateObjectManager.SetupWithManager(ctx, mgr, bldr); err != nil {
		return nil, err
	}
	if err := validateRest(pass); err != nil {
		return nil, err
	}
	withdraw, err := root.claimChildren(ctx, mgr, &r.requests, r.Request, false)
	if err != nil {
		return nil, err
	}
	built, err := r.watched.build(ctx, mgr, bldr, record, yields, r)
	if err != nil {
		withdraw()
	}
	return built, err
}

func (r *AggregateReconciler[T]) root() root {
	return root{kind: "AggregateReconciler", name: r.Name, named: r.named, resourceType: r.Type, config: r.Config}
}

func (r *AggregateReconciler[T]) scope() scope {
	return scope{
		request: r.Request, single: true, config: &r.Config, originalConfig: &r.Config,
		resourceType: r.Type, originalResourceType: r.Type,
		watched: &r.watched, controller: r.Name,
	}
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *AggregateReconciler[T]) Validate(ctx context.Context) error {
	r.init()
	ctx = r.scope().onto(ctx)
	problems := problems{}
	problems.kind(fmt.Sprintf("AggregateReconciler %q", r.Name), "Type", r.Type)
	if r.Request.Name == "" {
		problems.add("AggregateReconciler %q must define Request", r.Name)
	}
	if r.Config.Shard != nil {
		problems.add("AggregateReconciler %q must not define Config.Shard: its resource cannot be divided among replicas",
			r.Name)
	}
	r.defaults.validate(&problems, fmt.Sprintf("AggregateReconciler %q", r.Name))
	if manager, ok := r.AggregateObjectManager.(FinalizerHolder); ok && manager.HeldFinalizer() != "" {
		problems.add("AggregateReconciler %q must not define a Finalizer on AggregateObjectManager, "+
			"nothing would clear it", r.Name)
	}
	problems.nested(ctx, r.Reconciler, "AggregateReconciler %q must have a valid Reconciler", r.Name)
	return problems.err()
}

// DescribeTo implements [graph.Describer].
func (r *AggregateReconciler[T]) DescribeTo(n *graph.Node) {
	r.init()
	r.root().describe(n, &r.watched)
	n.WritesKind(r.Type)
	n.Nest("Reconciler", r.Reconciler)
	nestManager(n, "AggregateObjectManager", r.AggregateObjectManager)
}

// Reconcile reconciles the resource that Request names. It ignores other requests.
func (r *AggregateReconciler[T]) Reconcile(ctx context.Context, req Request) (Result, error) {
	return r.reconcile(ctx, req, controller.ReconcileIDFromContext(ctx) != "")
}

func (r *AggregateReconciler[T]) reconcile(ctx context.Context, req Request, byController bool) (Result, error) {
	r.init()
	if req != r.Request {
		return Result{}, nil
	}
	root := r.root()
	if byController {
		r.watched.warnNotSetUp(ctx, root)
	}
	ctx, this, wait := root.beginRequest(ctx, &r.requests, r.scope(), byController)
	if wait > 0 {
		return Result{RequeueAfter: wait}, nil
	}
	return this.run(ctx, root, func(ctx context.Context, _ client.Object) (Result, error) {
		return r.request(ctx, req, this)
	})
}

func (r *AggregateReconciler[T]) request(ctx context.Context, req Request, this *request) (Result, error) {
	around := hooks{before: r.BeforeReconcile, after: r.AfterReconcile}
	return around.call(ctx, req, func(ctx context.Context) (Result, error) {
		return r.fetchAndReconcile(ctx, req, this)
	})
}

func (r *AggregateReconciler[T]) fetchAndReconcile(ctx context.Context, req Request, this *request) (Result, error) {
	resource := r.Type.DeepCopyObject().(T)
	if err := r.Config.Get(ctx, req.NamespacedName, resource); err != nil {
		if r.WhileServed && meta.IsNoMatchError(err) {
			return Result{}, nil
		}
		if !apierrs.IsNotFound(err) {
			logUnlessQuiet(ctx, err, "unable to fetch resource")
			return Result{}, err
		}
		// A client may change the object although it returns NotFound.
		resource = r.Type.DeepCopyObject().(T)
		resource.SetNamespace(req.Namespace)
		resource.SetName(req.Name)
	} else {
		this.fetched(ctx, resource)
	}
	if resource.GetDeletionTimestamp() != nil {
		return Result{}, nil
	}

	// Reconciler may change the resource in memory. Keep a copy of the stored resource.
	actual := resource.DeepCopyObject().(T)
	result, err := r.Reconciler.Reconcile(ctx, resource)
	this.completed = err == nil
	if err != nil && (errors.Is(err, ErrDurable) || !errors.Is(err, ErrHaltSubReconcilers)) {
		return result, err
	}
	desired, err := r.desired(ctx, resource)
	if err != nil {
		return result, err
	}
	// Reconciler may have patched finalizers, see [AddFinalizer]. Copy the result of the patch.
	actual.SetFinalizers(resource.GetFinalizers())
	actual.SetResourceVersion(resource.GetResourceVersion())
	actual.SetGeneration(resource.GetGeneration())
	if nilcheck.IsNilPointer(desired) && exists(actual) {
		if kept, err := r.keepsForeign(ctx, actual); kept || err != nil {
			return result, err
		}
	}
	_, err = manageChild(ctx, r.AggregateObjectManager, client.Object(resource), actual, desired, handling{})
	return result, err
}

// keepsForeign reports whether the resource that is not desired was written only by other clients. Then it stays.
func (r *AggregateReconciler[T]) keepsForeign(ctx context.Context, actual T) (bool, error) {
	made, err := readOrigin(ctx, r.Config, actual, fieldOwners(ctx, r.AggregateObjectManager))
	if err != nil || made.here {
		return false, err
	}
	if _, warned := r.foreign.get(actual); !warned {
		now := rtime.RetrieveNow(ctx)
		r.foreign.put(actual, struct{}{}, now, now.Add(warningTTL))
		r.Config.recorder().Eventf(actual, corev1.EventTypeWarning, "NotMadeHere", "%s", truncate(fmt.Sprintf(
			"Left %s alone, although it is not desired: this controller did not make it. %s", identify(actual),
			writtenBy(made.managers))))
	}
	return true, nil
}

func (r *AggregateReconciler[T]) desired(ctx context.Context, resource T) (T, error) {
	config, err := RetrieveConfig(ctx)
	if err != nil {
		var none T
		return none, err
	}
	config.Tracker = discardTracker{}
	return r.DesiredResource(StashConfig(ctx, config), resource.DeepCopyObject().(T))
}

// discardTracker ignores all references.
type discardTracker struct{}

var _ tracker.Tracker = discardTracker{}

func (discardTracker) TrackReference(tracker.Reference, client.Object) error { return nil }
func (discardTracker) TrackObject(client.Object, client.Object) error        { return nil }
func (discardTracker) GetObservers(client.Object) ([]types.NamespacedName, error) {
	return []types.NamespacedName{}, nil
}

// startSource enqueues a request when the controller starts, with the priority of objects that exist at the start.
type startSource Request

var _ source.Source = startSource{}

// Start enqueues the request.
func (s startSource) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
	if priorities, ok := queue.(priorityqueue.PriorityQueue[Request]); ok {
		priorities.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, Request(s))
		return nil
	}
	queue.Add(Request(s))
	return nil
}

// CauseType returns the type of the cause of the request.
func (startSource) CauseType() observe.CauseType { return observe.CauseStartUp }

func (s startSource) String() string { return "start" }
