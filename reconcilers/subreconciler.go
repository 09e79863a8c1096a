// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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

// SubReconciler reconciles a part of a resource. All reconcilers below a root reconciler are subreconcilers. Most of
// them are composed of other subreconcilers.
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
		aggregate.Requeue = aggregate.Requeue || result.Requeue //nolint:staticcheck // users' subreconcilers may still set it
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
