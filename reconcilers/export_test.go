// SPDX-License-Identifier: Apache-2.0

package reconcilers

import "context"

// ReconcileManaged is what the manager calls.
func (r *ResourceReconciler[T]) ReconcileManaged(ctx context.Context, req Request) (Result, error) {
	return r.reconcileManaged(ctx, req)
}
