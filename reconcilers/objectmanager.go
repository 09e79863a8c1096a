// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ObjectManager brings one object from its actual to its desired state. It is the strategy behind reconcilers that own
// objects: how objects are created, changed and deleted, and nothing about which.
//
// A manager is used for many objects, and should be the same for an object over time: it may remember what it did.
type ObjectManager[Type client.Object] interface {
	// SetupWithManager registers watches the object manager needs.
	SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error

	// Manage creates, updates or deletes an object so that it becomes as desired, and returns it as the API server now has
	// it, or nil when it does not exist or is going away.
	//
	// The object exists when actual is not nil and has a creation timestamp; it should exist when desired is not nil.
	// Events, tracked references and finalizers are those of resource, the reconciled resource.
	Manage(ctx context.Context, resource client.Object, actual, desired Type) (Type, error)
}

// FinalizerHolder is an [ObjectManager] that holds a finalizer on the reconciled resource and clears it when it is
// called with nothing to manage. An object manager that wraps another one should pass it on: before such a manager is
// told that there is nothing, the API server is asked, since the cache may not have seen the latest object yet.
type FinalizerHolder interface {
	// HeldFinalizer returns the finalizer, "" for none.
	HeldFinalizer() string
}

// exists tells a stored object from a blank or missing one.
func exists(obj client.Object) bool {
	if isNil(obj) {
		return false
	}
	created := obj.GetCreationTimestamp()
	return !created.IsZero()
}
