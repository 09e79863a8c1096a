// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/objects/nilcheck"
)

// ObjectManager brings one object from its actual to its desired state. It defines how reconcilers create, update and
// delete the objects that they own.
//
// A manager handles many objects. Use the same manager for an object every time, because it may remember earlier
// writes.
//
// For children and aggregates, the context makes the client of the Config write as the field owner of the controller,
// which says what the controller has made, see [ChildReconciler]. A manager that names another field owner in its
// requests should be used with the same name as [Config.FieldOwner].
type ObjectManager[Type client.Object] interface {
	// SetupWithManager registers the watches that the object manager needs.
	SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error

	// Manage creates, updates or deletes an object to reach the desired state. It returns the object in the API server,
	// or nil if the object does not exist or is being deleted.
	//
	// The object exists if actual is not nil and has a creation timestamp. It should exist if desired is not nil.
	// Events, tracked references and finalizers belong to resource, the reconciled resource.
	Manage(ctx context.Context, resource client.Object, actual, desired Type) (Type, error)
}

// FinalizerHolder is an [ObjectManager] that sets a finalizer on the reconciled resource and removes it when Manage is
// called without an actual and a desired object. A wrapper of an object manager should implement it too: before such a
// call, reconcilers list the objects from the API server, because the cache may not have the latest object yet.
type FinalizerHolder interface {
	// HeldFinalizer returns the finalizer, or "" if the manager sets none.
	HeldFinalizer() string
}

// sharingManager is an object manager that does not change actual objects, so that a cache can share them.
type sharingManager[T client.Object] interface {
	manage(ctx context.Context, resource client.Object, actual, desired T, how handling) (T, error)
}

// handling is how an object manager treats the objects of one call.
type handling struct {
	// shared reports whether the actual object is shared with a cache. A copy of it must be returned.
	shared bool
	// child reports whether the field owner of the root is recorded, which says that the controller made the object.
	child bool
	// unchanged reports whether an object is only deleted if it is still as it was read.
	unchanged bool
}

// manageChild calls an object manager for a child of the resource, or for the resource itself.
func manageChild[T client.Object](
	ctx context.Context, manager ObjectManager[T], resource client.Object, actual, desired T, how handling,
) (T, error) {
	how.child = true
	if manager, ok := manager.(sharingManager[T]); ok {
		return manager.manage(ctx, resource, actual, desired, how)
	}
	return manager.Manage(guard.WithFieldOwner(ctx, fieldOwner(ctx)), resource, actual, desired)
}

// exists reports whether obj is a stored object.
func exists(obj client.Object) bool {
	if nilcheck.IsNilPointer(obj) {
		return false
	}
	created := obj.GetCreationTimestamp()
	return !created.IsZero()
}
