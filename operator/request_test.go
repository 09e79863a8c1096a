// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

func TestTypedReconciler(t *testing.T) {
	ctx := t.Context()
	request := operator.ReconcileRequest{
		Action: operator.ReconcileActionUpdated, Object: version("a", 1, 1), State: map[string]any{"some": "state"},
	}

	result, err := (&operator.TypedReconciler[*fixture.Resource]{}).Reconcile(ctx, request)
	equal(t, "result of no function", operator.ReconcileResult{}, result)
	wantErr(t, err)

	_, err = (&operator.TypedReconciler[*fixture.Resource]{
		ReconcileFunc: func(
			_ context.Context, got operator.TypedReconcileRequest[*fixture.Resource],
		) (operator.ReconcileResult, error) {
			equal(
				t, "request",
				operator.TypedReconcileRequest[*fixture.Resource]{
					Action: request.Action, Object: version("a", 1, 1), State: request.State,
				},
				got,
			)
			return operator.ReconcileResult{}, errTest
		},
	}).Reconcile(ctx, request)
	wantErr(t, err, errTest)

	never := func(context.Context, operator.TypedReconcileRequest[*corev1.ConfigMap]) (operator.ReconcileResult, error) {
		t.Error("called with an object of another type")
		return operator.ReconcileResult{}, nil
	}
	_, err = (&operator.TypedReconciler[*corev1.ConfigMap]{ReconcileFunc: never}).Reconcile(ctx, request)
	wantText(t, "cannot handle an object of type *fixture.Resource, only of type *v1.ConfigMap", err)
}

func TestCannotCastErrorIsTerminal(t *testing.T) {
	reconciler := &operator.TypedReconciler[*corev1.ConfigMap]{
		ReconcileFunc: func(
			context.Context, operator.TypedReconcileRequest[*corev1.ConfigMap],
		) (operator.ReconcileResult, error) {
			return operator.ReconcileResult{}, nil
		},
	}
	for name, handler := range map[string]*operator.WithEdge[*fixture.Resource]{
		"a reconciler": operator.AsSubReconciler[*fixture.Resource](reconciler),
		"a tree of another type": operator.AsSubReconciler[*fixture.Resource](operator.AsReconciler(
			reconcilers.Sequence[*corev1.ConfigMap]{})),
	} {
		t.Run(name, func(t *testing.T) {
			handler.RetryPolicy = operator.DefaultRetryPolicy
			_, err := handler.Reconcile(newWorld(t).context(), version("a", 1, 1))
			var mismatch *operator.CannotCastError
			wantErr(t, err, reconcile.TerminalError(nil))
			if !asErr(err, &mismatch) || mismatch.Have != "*fixture.Resource" || mismatch.Want != "*v1.ConfigMap" {
				t.Errorf("error: %v", err)
			}
		})
	}
}
