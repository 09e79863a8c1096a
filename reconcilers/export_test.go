// SPDX-License-Identifier: Apache-2.0

package reconcilers

import "context"

// Names of the index by owner.
var (
	OwnerIndexField = ownerIndexField
	ControllerUID   = controllerUID
)

// Describe exports describe for tests.
var Describe = describe

// ReconcileManaged calls Reconcile like a controller.
func (r *ResourceReconciler[T]) ReconcileManaged(ctx context.Context, req Request) (Result, error) {
	return r.reconcile(ctx, req, true)
}

// ReconcileManaged calls Reconcile like a controller.
func (r *AggregateReconciler[T]) ReconcileManaged(ctx context.Context, req Request) (Result, error) {
	return r.reconcile(ctx, req, true)
}
