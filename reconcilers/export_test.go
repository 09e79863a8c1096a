// SPDX-License-Identifier: Apache-2.0

package reconcilers

import "context"

// What the index by owner is made of.
var (
	OwnerIndexField = ownerIndexField
	ControllerUID   = controllerUID
)

// Describe is how a reference is written in a log line.
var Describe = describe

// ReconcileManaged is Reconcile as a controller calls it.
func (r *ResourceReconciler[T]) ReconcileManaged(ctx context.Context, req Request) (Result, error) {
	return r.reconcile(ctx, req, true)
}

// ReconcileManaged is Reconcile as a controller calls it.
func (r *AggregateReconciler[T]) ReconcileManaged(ctx context.Context, req Request) (Result, error) {
	return r.reconcile(ctx, req, true)
}

// ChangedPaths is what is logged of a difference.
var ChangedPaths = changedPaths
