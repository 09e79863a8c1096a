// SPDX-License-Identifier: Apache-2.0

// Package controller reports the resources of a kind to another system, once for each change of their specs. It has two
// versions: one with a single function for all events, and one with a function for each type of event.
package controller

import (
	"context"
	"time"

	v1 "trueup.dev/examples/mykind/api/v1"
	"trueup.dev/examples/mykind/infosystem"
	"trueup.dev/logging"
	"trueup.dev/operator"
	"trueup.dev/resource"
)

// InfoClient is a client of the other system.
type InfoClient interface {
	ApplyInfo(namespace, name, someInfo, otherInfo string) error
	Delete(namespace, name string) error
}

// NewMyKindReconciler returns a reconciler for MyKind. It requeues the request if the other system is unavailable, and
// leaves all other errors to the retry policy.
func NewMyKindReconciler(infoClient InfoClient, store *resource.TypedStore[*v1.MyKind]) operator.Reconciler {
	return &operator.TypedReconciler[*v1.MyKind]{
		ReconcileFunc: func(
			ctx context.Context, req operator.TypedReconcileRequest[*v1.MyKind],
		) (operator.ReconcileResult, error) {
			logging.FromContext(ctx).Info("Reconcile request", "name", req.Object.GetName(),
				"action", operator.ResourceActionFromReconcileAction(req.Action), "generation", req.Object.GetGeneration())
			if req.Action == operator.ReconcileActionDeleted {
				return operator.ReconcileResult{}, infoClient.Delete(req.Object.GetNamespace(), req.Object.GetName())
			}
			// The status records what the other system has, so that nothing is reported again after a restart.
			if req.Object.GetGeneration() == req.Object.Status.LastAppliedGeneration {
				return operator.ReconcileResult{}, nil
			}
			err := infoClient.ApplyInfo(
				req.Object.GetNamespace(), req.Object.GetName(), req.Object.Spec.SomeInfo, req.Object.Spec.OtherInfo,
			)
			if infosystem.IsRetryable(err) {
				return operator.ReconcileResult{RequeueAfter: retryAfter}, nil
			}
			if err != nil {
				return operator.ReconcileResult{}, err
			}
			req.Object.Status.LastAppliedGeneration = req.Object.GetGeneration()
			_, err = store.UpdateSubresource(
				ctx, req.Object.GetStaticMetadata().Identifier(), resource.SubresourceStatus, req.Object,
			)
			return operator.ReconcileResult{}, err
		},
	}
}

// retryAfter is the delay before a retry when the other system is unavailable.
const retryAfter = time.Second
