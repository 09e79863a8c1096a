// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

func TestWiden(t *testing.T) {
	seen := ""
	tree := operator.Widen(&reconcilers.SyncReconciler[*corev1.ConfigMap]{Sync: func(
		_ context.Context, object *corev1.ConfigMap,
	) error {
		seen = object.Data["a"]
		return nil
	}})
	if _, err := tree.Reconcile(t.Context(), &corev1.ConfigMap{Data: map[string]string{"a": "b"}}); err != nil ||
		seen != "b" {
		t.Errorf("the tree has seen %q, error %v", seen, err)
	}
	var mismatch *operator.CannotCastError
	if _, err := tree.Reconcile(t.Context(), &corev1.Secret{}); !errors.As(err, &mismatch) {
		t.Errorf("error = %v for another type, want a CannotCastError", err)
	}
	ctx := validation.WithRecursive(t.Context())
	for name, invalid := range map[string]reconcilers.SubReconciler[*corev1.ConfigMap]{
		"nil": nil, "invalid": &reconcilers.SyncReconciler[*corev1.ConfigMap]{},
	} {
		if err := operator.Widen(invalid).(validation.Validator).Validate(ctx); err == nil {
			t.Errorf("%s: a tree that cannot work is valid", name)
		}
	}
}

func ExampleWiden() {
	var tree reconcilers.SubReconciler[*corev1.ConfigMap] = reconcilers.Sequence[*corev1.ConfigMap]{}
	_ = operator.Widen(tree) // a reconcilers.SubReconciler[resource.Object], as kinds of an App have them
}
