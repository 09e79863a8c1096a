// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"

	"trueup.dev/resource"
)

var _ Reconciler = (*OpinionatedReconciler)(nil)

// OpinionatedReconciler makes a Reconciler opinionated wherever a [Reconciler] is expected, in an App or an
// [InformerController], which call it as an [Opinionated]. For other controllers, use [NewOpinionated].
type OpinionatedReconciler struct {
	// Reconciler is called after the finalizer is set. Required.
	Reconciler Reconciler
	// Finalizer is the finalizer to set. It must never change. Defaults to the finalizer of the kind in an App;
	// required in an InformerController.
	Finalizer string
}

// Wrap sets the Reconciler.
func (r *OpinionatedReconciler) Wrap(reconciler Reconciler) { r.Reconciler = reconciler }

// Reconcile calls the Reconciler, without a finalizer. An App and an InformerController do not call it: see
// [AsOpinionated].
func (r *OpinionatedReconciler) Reconcile(ctx context.Context, req ReconcileRequest) (ReconcileResult, error) {
	if r.Reconciler == nil {
		return ReconcileResult{}, errors.New("OpinionatedReconciler must define Reconciler")
	}
	return r.Reconciler.Reconcile(ctx, req)
}

// Wrapped returns the Reconciler.
func (r *OpinionatedReconciler) Wrapped() any { return r.Reconciler }

func (r *OpinionatedReconciler) untyped() *Opinionated[resource.Object] {
	return NewOpinionated[resource.Object](r.Finalizer, r.Reconciler)
}
