// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
