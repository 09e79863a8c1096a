// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	"trueup.dev/stash"
	"trueup.dev/validation"
)

// Aliases for names from other packages that most reconcilers use.
type (
	// Builder is controller-runtime's builder of controllers.
	Builder = builder.Builder
	// Manager is controller-runtime's manager.
	Manager = manager.Manager
	// Request names the resource to reconcile.
	Request = reconcile.Request
	// Result is the result of a reconcile. It specifies when to reconcile again.
	Result = reconcile.Result
	// Defaulter is a resource that sets its own defaults.
	Defaulter = validation.Defaulter
	// StashKey names a value in the stash.
	StashKey = stash.Key
	// Stasher stores and retrieves one typed value in the stash.
	Stasher[T any] = stash.Stasher[T]
)

// NewStasher returns a [Stasher] for the values stored under key.
func NewStasher[T any](key stash.Key) stash.Stasher[T] {
	return stash.New[T](key)
}

// The API of package stash, with the names of earlier versions.
var (
	WithStash                  = stash.WithContext
	StashValue                 = stash.StoreValue
	RetrieveValue              = stash.RetrieveValue
	HasValue                   = stash.HasValue
	ClearValue                 = stash.ClearValue
	ErrStashValueNotFound      = stash.ErrValueNotFound
	ErrStashValueNotAssignable = stash.ErrValueNotAssignable
)

// SubReconciler reconciles a part of a resource. All reconcilers below a root reconciler are sub reconcilers. Most of
// them are composed of other sub reconcilers.
type SubReconciler[Type client.Object] interface {
	// SetupWithManager registers the watches and indexes that the reconciler needs. It is called once, before the
	// manager starts. The context contains the config of the root reconciler.
	SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconcile reconciles the resource and may change it in memory. The root reconciler writes changes to the status,
	// but no other changes. An error stops the reconcilers that follow. See [ErrHaltSubReconcilers] and [ErrQuiet] for
	// errors with a special meaning.
	Reconcile(ctx context.Context, resource Type) (Result, error)
}

// AggregateResults combines results. It returns the shortest non-zero RequeueAfter, Requeue if any result sets it, and
// the highest Priority.
func AggregateResults(results ...Result) Result {
	aggregate := Result{}
	for _, result := range results {
		if result.RequeueAfter != 0 && (aggregate.RequeueAfter == 0 || result.RequeueAfter < aggregate.RequeueAfter) {
			aggregate.RequeueAfter = result.RequeueAfter
		}
		if result.Priority != nil && (aggregate.Priority == nil || *result.Priority > *aggregate.Priority) {
			aggregate.Priority = result.Priority
		}
		aggregate.Requeue = aggregate.Requeue || result.Requeue //nolint:staticcheck // users' sub reconcilers may still set it
	}
	return aggregate
}

// MergeMaps returns a new map with the entries of all maps. Later entries replace earlier ones. The result is never
// nil.
func MergeMaps(maps ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			merged[k] = v
		}
	}
	return merged
}

var _ subReconciler = (*SyncReconciler[client.Object])(nil)

// SyncReconciler runs the user's functions, for example to look up reference data, to call APIs outside of Kubernetes,
// or for any task that no other reconciler covers.
//
// If the resource is being deleted, or the reconciler is part of a step of [Steps] that is removed, Finalize is called
// instead of Sync. State that must be cleaned up needs a
// finalizer: wrap the SyncReconciler in [WithFinalizer].
//
// RBAC: the permissions that the functions need. To derive them, set Describe.
type SyncReconciler[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `SyncReconciler`.
	Name string

	// Setup registers watches and indexes. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// SyncDuringFinalization also calls Sync while the resource is being deleted, before Finalize. Defaults to false.
	SyncDuringFinalization bool

	// Sync reconciles a resource that is not being deleted. Exactly one of Sync and SyncWithResult is required.
	Sync func(ctx context.Context, resource Type) error

	// SyncWithResult is like Sync and returns a result.
	SyncWithResult func(ctx context.Context, resource Type) (Result, error)

	// Finalize cleans up while the resource is being deleted. It cannot be combined with FinalizeWithResult. Optional.
	Finalize func(ctx context.Context, resource Type) error

	// FinalizeWithResult is like Finalize and returns a result.
	FinalizeWithResult func(ctx context.Context, resource Type) (Result, error)

	// Describe adds what the functions read and write to the graph of reconcilers, from which permissions are derived.
	// Kinds that Setup watches are known without it. Optional.
	Describe func(n *graph.Node)

	lazyInit sync.Once
}

func (r *SyncReconciler[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "SyncReconciler"
		}
	})
}

// SetupWithManager validates the reconciler and calls Setup.
func (r *SyncReconciler[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the combination of functions.
func (r *SyncReconciler[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer]. It calls Describe.
func (r *SyncReconciler[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *SyncReconciler[T]) describe(d *description) {
	r.init()
	d.is("SyncReconciler", r.Name)
	d.require(r.Sync != nil || r.SyncWithResult != nil, "must implement Sync or SyncWithResult")
	d.require(r.Sync == nil || r.SyncWithResult == nil, "may not implement both Sync and SyncWithResult")
	d.require(r.Finalize == nil || r.FinalizeWithResult == nil, "may not implement both Finalize and FinalizeWithResult")
	d.setsUp(r.Setup)
	if r.Describe != nil {
		d.accesses(r.Describe)
	}
}

// Reconcile calls Sync, Finalize or both. An error from Sync skips Finalize.
func (r *SyncReconciler[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *SyncReconciler[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	deleting := MustRemove(ctx, resource)
	result := Result{}
	if !deleting || r.SyncDuringFinalization {
		synced, err := call(ctx, resource, r.Sync, r.SyncWithResult)
		result = AggregateResults(result, synced)
		if err != nil {
			logUnlessQuiet(ctx, err, "unable to sync")
			return result, err
		}
	}
	if deleting {
		finalized, err := call(ctx, resource, r.Finalize, r.FinalizeWithResult)
		result = AggregateResults(result, finalized)
		if err != nil {
			logUnlessQuiet(ctx, err, "unable to finalize")
			return result, err
		}
	}
	return result, nil
}

// call calls the form of a function that is set.
func call[T client.Object](
	ctx context.Context, resource T,
	plain func(context.Context, T) error, withResult func(context.Context, T) (Result, error),
) (Result, error) {
	switch {
	case withResult != nil:
		return withResult(ctx, resource)
	case plain != nil:
		return Result{}, plain(ctx, resource)
	default:
		return Result{}, nil
	}
}

func logUnlessQuiet(ctx context.Context, err error, message string, values ...any) {
	if errors.Is(err, ErrHaltSubReconcilers) {
		waitsFrom(ctx).halted(ctx)
	}
	if !isSilent(ctx, err) {
		logr.FromContextOrDiscard(ctx).Error(err, message, values...)
	}
}

// Names of earlier versions. `go fix` replaces them.

// ParentReconciler is a ResourceReconciler.
//
// Deprecated: use [ResourceReconciler].
//
//go:fix inline
type ParentReconciler[Type client.Object] = ResourceReconciler[Type]

// CastParent is a CastResource.
//
// Deprecated: use [CastResource].
//
//go:fix inline
type CastParent[Type, CastType client.Object] = CastResource[Type, CastType]

// ResourceManager is an UpdatingObjectManager.
//
// Deprecated: use [UpdatingObjectManager], or [ObjectManager] for a variable.
//
//go:fix inline
type ResourceManager[Type client.Object] = UpdatingObjectManager[Type]

// HaltSubReconcilers stops the reconcilers that follow.
//
// Deprecated: use [ErrHaltSubReconcilers].
var HaltSubReconcilers = ErrHaltSubReconcilers

// AddParentFinalizer adds a finalizer.
//
// Deprecated: use [AddFinalizer].
//
//go:fix inline
func AddParentFinalizer(ctx context.Context, parent client.Object, finalizer string) error {
	return AddFinalizer(ctx, parent, finalizer)
}

// ClearParentFinalizer clears a finalizer.
//
// Deprecated: use [ClearFinalizer].
//
//go:fix inline
func ClearParentFinalizer(ctx context.Context, parent client.Object, finalizer string) error {
	return ClearFinalizer(ctx, parent, finalizer)
}

// RetrieveParentConfig returns the config that loaded the resource.
//
// Deprecated: use [RetrieveOriginalConfig].
//
//go:fix inline
func RetrieveParentConfig(ctx context.Context) (Config, error) {
	return RetrieveOriginalConfig(ctx)
}

// RetrieveParentConfigOrDie returns the config that loaded the resource.
//
// Deprecated: use [RetrieveOriginalConfigOrDie].
//
//go:fix inline
func RetrieveParentConfigOrDie(ctx context.Context) Config {
	return RetrieveOriginalConfigOrDie(ctx)
}

// StashParentConfig puts the config that loaded the resource on the context.
//
// Deprecated: use [StashOriginalConfig].
//
//go:fix inline
func StashParentConfig(ctx context.Context, parentConfig Config) context.Context {
	return StashOriginalConfig(ctx, parentConfig)
}

// RetrieveParentType returns the type with which the resource was loaded.
//
// Deprecated: use [RetrieveOriginalResourceType].
//
//go:fix inline
func RetrieveParentType(ctx context.Context) client.Object {
	return RetrieveOriginalResourceType(ctx)
}

// StashParentType puts the type with which the resource was loaded on the context.
//
// Deprecated: use [StashOriginalResourceType].
//
//go:fix inline
func StashParentType(ctx context.Context, parentType client.Object) context.Context {
	return StashOriginalResourceType(ctx, parentType)
}

// RetrieveCastParentType returns the current type of the resource.
//
// Deprecated: use [RetrieveResourceType].
//
//go:fix inline
func RetrieveCastParentType(ctx context.Context) client.Object {
	return RetrieveResourceType(ctx)
}

// StashCastParentType puts the current type of the resource on the context.
//
// Deprecated: use [StashResourceType].
//
//go:fix inline
func StashCastParentType(ctx context.Context, currentType client.Object) context.Context {
	return StashResourceType(ctx, currentType)
}

// IgnoreAllUnexported is a cmp option that ignores the unexported fields of all structs and their contents. Without it,
// cmp panics on types such as resource.Quantity.
var IgnoreAllUnexported = cmp.FilterPath(func(path cmp.Path) bool {
	// Only a cmp.StructField has both methods. With an assertion to that type, or with Path.Last, the linker would keep
	// all methods of all types of a program, because the names of these steps are found by reflection.
	field, ok := path[len(path)-1].(interface {
		Name() string
		Index() int
	})
	if !ok {
		return false
	}
	first, _ := utf8.DecodeRuneInString(field.Name())
	return !unicode.IsUpper(first)
}, cmp.Ignore())
