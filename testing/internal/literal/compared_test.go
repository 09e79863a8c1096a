// SPDX-License-Identifier: Apache-2.0

package literal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	rtesting "trueup.dev/testing"
	"trueup.dev/testing/internal/literal"
)

// A pasted object has the fields that the Differ compares, and no others.
func TestCompared(t *testing.T) {
	observed := &fixture.Resource{
		TypeMeta: metav1.TypeMeta{Kind: "Resource"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "web", Name: "blog", UID: "u", Generation: 2, ResourceVersion: "999", CreationTimestamp: now,
			Labels:      map[string]string{},
			Annotations: map[string]string{"a": "b"},
		},
		Spec: fixture.ResourceSpec{Fields: map[string]string{"a": "1"}},
	}
	observed.Status.Conditions = []metav1.Condition{{Type: "Ready", LastTransitionTime: now}}
	content := unstructuredOf(map[string]any{
		"apiVersion": "v1", "kind": "Resource",
		"metadata": map[string]any{
			"namespace": "web", "name": "blog", "uid": "u", "resourceVersion": "999", "creationTimestamp": nil,
			"labels": map[string]any{"a": "b"},
		},
		"spec": map[string]any{"size": int64(1)},
		"status": map[string]any{
			"conditions": []any{map[string]any{"type": "Ready", "lastTransitionTime": "2026-01-02T03:04:05Z"}},
		},
	})

	tests := map[string]struct {
		observed client.Object
		diff     func(expected, actual client.Object) string
		want     client.Object
	}{
		"resource": {
			observed: observed, diff: rtesting.DefaultDiffer.Resource,
			want: rtesting.With(observed, func(r *fixture.Resource) {
				r.Labels, r.Status.Conditions[0].LastTransitionTime = nil, metav1.Time{}
			}),
		},
		"create": {
			observed: observed, diff: rtesting.DefaultDiffer.ResourceCreate,
			want: rtesting.With(observed, func(r *fixture.Resource) {
				r.Labels, r.Status.Conditions[0].LastTransitionTime = nil, metav1.Time{}
				r.ResourceVersion, r.CreationTimestamp = "", metav1.Time{}
			}),
		},
		"status update": {
			observed: observed, diff: rtesting.DefaultDiffer.ResourceStatusUpdate,
			want: &fixture.Resource{
				TypeMeta:   metav1.TypeMeta{Kind: "Resource"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"},
				Status: rtesting.With(observed, func(r *fixture.Resource) {
					r.Status.Conditions[0].LastTransitionTime = metav1.Time{}
				}).Status,
			},
		},
		"unstructured resource": {
			observed: content, diff: rtesting.DefaultDiffer.Resource,
			want: unstructuredOf(map[string]any{
				"apiVersion": "v1", "kind": "Resource",
				"metadata": map[string]any{
					"namespace": "web", "name": "blog", "uid": "u", "resourceVersion": "999", "labels": map[string]any{"a": "b"},
					"creationTimestamp": nil,
				},
				"spec":   map[string]any{"size": int64(1)},
				"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready"}}},
			}),
		},
		"unstructured create": {
			observed: content, diff: rtesting.DefaultDiffer.ResourceCreate,
			want: unstructuredOf(map[string]any{
				"apiVersion": "v1", "kind": "Resource",
				"metadata": map[string]any{"namespace": "web", "name": "blog", "uid": "u", "labels": map[string]any{"a": "b"}},
				"spec":     map[string]any{"size": int64(1)},
				"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready"}}},
			}),
		},
		"unstructured status update": {
			observed: content, diff: rtesting.DefaultDiffer.ResourceStatusUpdate,
			want: unstructuredOf(map[string]any{
				"apiVersion": "v1", "kind": "Resource", "metadata": map[string]any{"namespace": "web", "name": "blog"},
				"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready"}}},
			}),
		},
		"a Differ that compares everything": {
			observed: observed, diff: func(expected, actual client.Object) string { return cmp.Diff(expected, actual) },
			want: observed,
		},
		"a Differ that compares transition times": {
			observed: observed,
			diff: func(expected, actual client.Object) string {
				return cmp.Diff(expected.(*fixture.Resource).Status, actual.(*fixture.Resource).Status)
			},
			want: &fixture.Resource{
				TypeMeta: metav1.TypeMeta{Kind: "Resource"}, ObjectMeta: metav1.ObjectMeta{
					Namespace: "web", Name: "blog",
				}, Status: observed.Status,
			},
		},
		"a Differ that compares nothing": {
			observed: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}, Data: map[string]string{"a": "b"}},
			diff:     func(client.Object, client.Object) string { return "" },
			want:     &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}},
		},
		"a Differ that always reports a difference": {
			observed: observed, diff: func(client.Object, client.Object) string { return "no" },
			want: observed,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := tt.observed.DeepCopyObject()
			got := literal.Compared(tt.observed, tt.diff)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tt.observed); diff != "" {
				t.Errorf("the observed object was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestComparedValue(t *testing.T) {
	diff := func(expected, actual any) string { return rtesting.DefaultDiffer.StashedValue(expected, actual, "key") }
	tests := map[string]struct{ observed, want any }{
		"object": {
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		},
		"nil of a type":           {(*corev1.ConfigMap)(nil), (*corev1.ConfigMap)(nil)},
		"nil":                     {nil, nil},
		"not an object":           {"text", "text"},
		"object by value":         {valueObject{}, valueObject{}},
		"part of an object":       {corev1.PodSpec{NodeName: "a"}, corev1.PodSpec{NodeName: "a"}},
		"pointer to an interface": {new(any("a")), new(any("a"))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, literal.ComparedValue(tt.observed, diff)); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

// valueObject is an object that is not a pointer.
type valueObject struct{ client.Object }

func (valueObject) DeepCopyObject() runtime.Object { return valueObject{} }
