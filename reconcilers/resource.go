// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/duck"
	"trueup.dev/internal/setupcheck"
	"trueup.dev/validation"
)

var (
	_ reconcile.Reconciler = (*ResourceReconciler[client.Object])(nil)
	_ validation.Validator = (*ResourceReconciler[client.Object])(nil)
)

// ResourceReconciler reconciles all resources of a kind. It is the root of a tree of reconcilers and does what is the
// same for all controllers; what is particular to one is up to the reconciler below it.
//
// For each request it fetches the resource and applies its defaults, initializes the conditions of its status, runs the
// Reconciler, notes the observed generation, and writes the status when that has changed. Conditions that have not
// changed keep their transition time. Reconcilers below find the request, the config and a fresh stash on the context.
//
// Events on the resource: Warning StatusUpdateFailed, and with StatusEvents Normal StatusUpdated; for duck types, whose
// status is patched, StatusPatchFailed and StatusPatched. In a controller also Warning ReconcileFailed, with the step
// and the object, for an error that has no other event.
//
// RBAC, with the group and the plural of the kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>/status,verbs=get;update;patch
//	// +kubebuilder:rbac:groups=core,resources=events,verbs=create;patch
type ResourceReconciler[Type client.Object] struct {
	// Name identifies this reconciler in logs and, when set, names its controller, which has to be unique within a
	// process. Defaults to `<Type>ResourceReconciler`, and to the lower-case kind for the controller.
	Name string

	// Setup changes the controller that is being built: further watches, its name, its options. It is called before the
	// Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// SetupForOptions are options for watching the resource itself, predicates for example. Optional.
	SetupForOptions []builder.ForOption

	// Type is the kind of the resource. Defaults to the type parameter; required for unstructured objects and duck types.
	Type Type

	// SkipStatusUpdate leaves the status alone: nothing is written for the resource. Defaults to false.
	SkipStatusUpdate bool

	// SyncStatusDuringFinalization writes the status also while the resource is being deleted. Defaults to false.
	SyncStatusDuringFinalization bool

	// StatusEvents emits an event for each status that a controller writes. Most say no more than the status itself.
	// Reconcile called by anyone but a controller, a test for example, emits them in any case. Failures are always events.
	// Defaults to false.
	StatusEvents bool

	// Reconciler does the work, most often a [Sequence]. Required.
	Reconciler SubReconciler[Type]

	// BeforeReconcile is called first for each request, before the resource is fetched. A context it returns is used from
	// then on; an error ends the request. Optional.
	BeforeReconcile func(ctx context.Context, req Request) (context.Context, Result, error)

	// AfterReconcile is called last for each request and may change the outcome. Optional.
	AfterReconcile func(ctx context.Context, req Request, res Result, err error) (Result, error)

	// SkipRequest tells requests that are not for this reconciler. Nothing is done for them. Optional.
	SkipRequest func(ctx context.Context, req Request) bool

	// ReconcileAbsent is called for a request whose resource does not exist, or no longer: to drop what is held for it in
	// memory, for example. What must happen when a resource goes belongs below a [WithFinalizer], since a controller that
	// is not running misses that. Optional.
	ReconcileAbsent func(ctx context.Context, req Request) (Result, error)

	// SkipResource tells resources that are not for this reconciler. Nothing is done for them. Optional.
	SkipResource func(ctx context.Context, resource Type) bool

	// Config reaches the cluster of the resource, see [NewConfig]. Required.
	Config Config

	lazyInit sync.Once
	named    bool
	status   *statusType
	admitted admittedStatuses
	watched  watched
	requests requests
	// cached is the kind of the resource when it is read from the cache of a manager, which shares its objects.
	cached schema.GroupVersionKind
}

func (r *ResourceReconciler[T]) init() {
	r.lazyInit.Do(func() {
		if isNil(r.Type) {
			r.Type = newEmpty[T]()
		}
		r.named = r.Name != ""
		if !r.named {
			r.Name = fmt.Sprintf("%sResourceReconciler", resourceName(r.Config, r.Type))
		}
		if !isNil(r.Type) {
			r.status = newStatusType(r.Type)
		}
	})
}

// SetupWithManager adds a controller for the resource to the manager.
func (r *ResourceReconciler[T]) SetupWithManager(ctx context.Context, mgr Manager) error {
	_, err := r.setUp(ctx, mgr, false)
	return err
}

// SetupWithManagerYieldingController is SetupWithManager that returns the controller, to add watches to it later.
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
		// The builder has the better error for a kind that is not known.
		r.cached, _ = r.Config.GroupVersionKindFor(r.Type)
	}
	bldr := root.builder(mgr, r.SetupForOptions)
	if r.Setup != nil {
		if err := r.Setup(ctx, mgr, bldr); err != nil {
			return nil, err
		}
	}
	if err := r.Reconciler.SetupWithManager(ctx, mgr, bldr); err != nil {
		return nil, err
	}
	if err := validateRest(pass); err != nil {
		return nil, err
	}
	r.watched.learn(mgr, bldr, yields)
	return bldr.Build(r)
}

func (r *ResourceReconciler[T]) root() root {
	return root{kind: "ResourceReconciler", name: r.Name, named: r.named, resourceType: r.Type, config: r.Config}
}

// scope is what everything below this reconciler finds on the context.
func (r *ResourceReconciler[T]) scope(req Request) scope {
	return scope{
		request: req,
		config:  &r.Config, originalConfig: &r.Config,
		resourceType: r.Type, originalResourceType: r.Type,
		watched: &r.watched,
	}
}

// Validate checks the required fields and, when ctx asks for recursion, the Reconciler. It logs what the status of the
// resource lacks for the reconciler to do its part.
func (r *ResourceReconciler[T]) Validate(ctx context.Context) error {
	r.init()
	request := RetrieveRequest(ctx)
	ctx = r.scope(request).onto(ctx)

	problems := problems{}
	problems.kind(fmt.Sprintf("ResourceReconciler %q", r.Name), "Type", r.Type)
	if isNil(r.Reconciler) {
		problems.add("ResourceReconciler %q must define Reconciler", r.Name)
	}
	problems.nested(ctx, r.Reconciler, "ResourceReconciler %q must have a valid Reconciler", r.Name)
	if err := problems.err(); err != nil {
		return err
	}
	r.adviseOnStatus(logr.FromContextOrDiscard(ctx))
	return nil
}

func (r *ResourceReconciler[T]) adviseOnStatus(log logr.Logger) {
	s := r.status
	if s.unstructured {
		return
	}
	if s.field == nil {
		log.Info("resource missing status field, operations related to status will be skipped")
		return
	}
	if s.nilable {
		log.Info("resource status is nilable, status is typically a struct")
	}
	if s.observedGeneration == nil {
		log.Info("resource status missing ObservedGeneration field of type int64, generation will not be managed")
	}
	switch {
	case !s.initialize:
		log.Info("resource status missing InitializeConditions(context.Context) method, " +
			"conditions will not be auto-initialized")
	case !s.withContext:
		log.Info("resource status InitializeConditions() method is deprecated, use InitializeConditions(context.Context)")
	}
	if s.conditions == nil {
		log.Info("resource status is missing field Conditions of type []metav1.Condition, " +
			"condition timestamps will not be managed")
	}
}
