// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"

	"trueup.dev/operator"
)

var _ operator.Reconciler = (*Reconciler)(nil)

// Reconciler is an [operator.Reconciler] that calls a function, for objects of any type. See
// [operator.TypedReconciler] for one Go type.
type Reconciler struct {
	// ReconcileFunc is called for all actions. If it is nil, the reconciler does nothing.
	ReconcileFunc func(ctx context.Context, req operator.ReconcileRequest) (operator.ReconcileResult, error)
}

// Reconcile calls ReconcileFunc.
func (r *Reconciler) Reconcile(ctx context.Context, req operator.ReconcileRequest) (operator.ReconcileResult, error) {
	if r.ReconcileFunc == nil {
		return operator.ReconcileResult{}, nil
	}
	return r.ReconcileFunc(ctx, req)
}
