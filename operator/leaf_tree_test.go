// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// A tree that is called for a resource that no longer exists must not recreate its children.
func TestAsReconciler_DeletedResource(t *testing.T) {
	ctx, w := t.Context(), newWorld(t, version("1", 1, 1))
	finalized := 0
	tree := reconcilers.Sequence[*fixture.Resource]{
		&reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
			DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name}}, nil
			},
			MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
			ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
		},
		&reconcilers.SyncReconciler[*fixture.Resource]{
			Sync:     func(context.Context, *fixture.Resource) error { return nil },
			Finalize: func(context.Context, *fixture.Resource) error { finalized++; return nil },
		},
	}
	controller := &operator.Controller[*fixture.Resource]{
		Handlers: []reconcilers.SubReconciler[*fixture.Resource]{
			operator.AsSubReconciler[*fixture.Resource](operator.AsReconciler[*fixture.Resource](tree)),
		},
		Config: w.config,
	}
	reconcile := func() int {
		t.Helper()
		if _, err := controller.Reconcile(ctx, testRequest); err != nil {
			t.Fatal(err)
		}
		list := &corev1.ConfigMapList{}
		if err := w.server.List(ctx, list); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	if children := reconcile(); children != 1 {
		t.Fatalf("%d children, want 1", children)
	}
	for _, obj := range []client.Object{
		version("1", 1, 0), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test"}},
	} {
		if err := client.IgnoreNotFound(w.server.Delete(ctx, obj)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if children := reconcile(); children != 0 || finalized != 1 {
			t.Errorf("%d children, finalized %d times; want none, once", children, finalized)
		}
	}
}
