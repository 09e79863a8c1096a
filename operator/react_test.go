// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
)

// reacts reports whether a handler that was called for before is called again for after.
func reacts[T client.Object](t *testing.T, r *operator.WithEdge[T], before, after T) bool {
	t.Helper()
	calls := 0
	handler := operator.AsSubReconciler[T](&operator.TypedReconciler[T]{
		ReconcileFunc: func(context.Context, operator.TypedReconcileRequest[T]) (operator.ReconcileResult, error) {
			calls++
			return operator.ReconcileResult{}, nil
		},
	})
	handler.React, handler.PreviousState = r.React, r.PreviousState
	ctx := newWorld(t).context()
	for _, obj := range []T{before, after} {
		if _, err := handler.Reconcile(ctx, obj); err != nil {
			t.Fatal(err)
		}
	}
	return calls == 2
}

func TestReact(t *testing.T) {
	annotated := func(r *fixture.Resource) { r.Annotations = map[string]string{"some": "annotation"} }
	changes := map[string]*fixture.Resource{
		"nothing":    version("a", 1, 1),
		"spec":       version("a", 2, 2),
		"label":      version("a", 1, 2, labeled("new")),
		"annotation": version("a", 1, 2, annotated),
		"status":     version("a", 1, 2, observed),
		"finalizers": version("a", 1, 2, with("example.com/other")),
	}
	for name, tc := range map[string]struct {
		react operator.React
		want  []string
	}{
		"any, by default": {0, []string{"spec", "label", "annotation", "status", "finalizers"}},
		"any":             {operator.ReactAny, []string{"spec", "label", "annotation", "status", "finalizers"}},
		"spec":            {operator.ReactSpec, []string{"spec"}},
		"labels":          {operator.ReactLabels, []string{"label"}},
		"annotations":     {operator.ReactAnnotations, []string{"annotation"}},
		"status":          {operator.ReactStatus, []string{"status"}},
		"spec, labels, status": {
			operator.ReactSpec | operator.ReactLabels | operator.ReactStatus, []string{"spec", "label", "status"},
		},
		"labels and annotations": {operator.ReactLabels | operator.ReactAnnotations, []string{"label", "annotation"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]bool{}
			for _, change := range tc.want {
				want[change] = true
			}
			for change, after := range changes {
				if got := reacts(
					t, &operator.WithEdge[*fixture.Resource]{React: tc.react}, version("a", 1, 1), after,
				); got != want[change] {
					t.Errorf("%s: called %t, want %t", change, got, want[change])
				}
			}
		})
	}
}

// ConfigMaps have no generation.
func TestReact_KindsWithoutGeneration(t *testing.T) {
	configMap := func(version, value string, labels map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: "test", UID: "a", ResourceVersion: version, Labels: labels,
			}, Data: map[string]string{"key": value},
		}
	}
	untyped := func(version, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": value}, "metadata": map[string]any{
				"name": "test", "resourceVersion": version,
			},
		}}
	}
	broken := func(version string) *fixture.Resource {
		return &fixture.Resource{
			ObjectMeta: metav1.ObjectMeta{
				Name: "test", ResourceVersion: version,
			}, Spec: fixture.ResourceSpec{ErrOnMarshal: true},
		}
	}
	spec := &operator.WithEdge[*corev1.ConfigMap]{React: operator.ReactSpec}
	before := configMap("1", "value", nil)
	equal(t, "data", true, reacts(t, spec, before, configMap("2", "new", nil)))
	equal(t, "labels", false, reacts(t, spec, before, configMap("2", "value", map[string]string{"label": "new"})))
	equal(t, "nothing", false, reacts(t, spec, before, configMap("1", "value", nil)))

	anySpec := &operator.WithEdge[*unstructured.Unstructured]{React: operator.ReactSpec}
	equal(t, "data of an unstructured one", true, reacts(t, anySpec, untyped("1", "value"), untyped("2", "new")))
	equal(t, "version of an unstructured one", false, reacts(t, anySpec, untyped("1", "value"), untyped("2", "value")))

	equal(
		t, "what cannot be converted", false,
		reacts(t, &operator.WithEdge[*fixture.Resource]{React: operator.ReactSpec}, broken("1"), broken("2")),
	)

	// Fields that are not kept cannot be compared: any change counts.
	for _, kept := range []operator.PreviousState{operator.PreviousMetadata, operator.PreviousNone} {
		some := &operator.WithEdge[*corev1.ConfigMap]{React: operator.ReactSpec, PreviousState: kept}
		equal(t, "data, not remembered", true, reacts(t, some, before, configMap("2", "new", nil)))
		equal(
			t, "labels, data not remembered", true,
			reacts(t, some, before, configMap("2", "value", map[string]string{"label": "new"})),
		)
		equal(t, "nothing, not remembered", false, reacts(t, some, before, configMap("1", "value", nil)))
		labels := &operator.WithEdge[*corev1.ConfigMap]{React: operator.ReactLabels, PreviousState: kept}
		equal(
			t, "labels are remembered", true,
			reacts(t, labels, before, configMap("2", "value", map[string]string{"label": "new"})),
		)
		equal(t, "labels are compared", false, reacts(t, labels, before, configMap("2", "new", nil)))
	}
}
