// SPDX-License-Identifier: Apache-2.0

package difference_test

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
)

// Each change of one field, and each pair of them, must compare as reflect.DeepEqual compares it.
func TestIdentical(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	created := func(at time.Time) func(*corev1.ConfigMap) {
		return func(o *corev1.ConfigMap) { o.CreationTimestamp = metav1.NewTime(at) }
	}
	owned := func(owners ...metav1.OwnerReference) func(*corev1.ConfigMap) {
		return func(o *corev1.ConfigMap) { o.OwnerReferences = owners }
	}
	managed := func(fields *metav1.FieldsV1) func(*corev1.ConfigMap) {
		return func(o *corev1.ConfigMap) {
			o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a", FieldsV1: fields}}
		}
	}
	changes := map[string]func(*corev1.ConfigMap){
		"nothing":             func(*corev1.ConfigMap) {},
		"kind":                func(o *corev1.ConfigMap) { o.Kind = "ConfigMap" },
		"name":                func(o *corev1.ConfigMap) { o.Name = "b" },
		"generateName":        func(o *corev1.ConfigMap) { o.GenerateName = "b" },
		"namespace":           func(o *corev1.ConfigMap) { o.Namespace = "b" },
		"selfLink":            func(o *corev1.ConfigMap) { o.SelfLink = "b" }, //nolint:staticcheck // as in Identical
		"uid":                 func(o *corev1.ConfigMap) { o.UID = "b" },
		"resourceVersion":     func(o *corev1.ConfigMap) { o.ResourceVersion = "b" },
		"generation":          func(o *corev1.ConfigMap) { o.Generation = 2 },
		"created":             created(at),
		"created, local":      created(at.In(time.FixedZone("", 60))),
		"created, same zone":  created(at.In(time.FixedZone("", 60))),
		"deleted":             func(o *corev1.ConfigMap) { o.DeletionTimestamp = new(metav1.NewTime(at)) },
		"grace":               func(o *corev1.ConfigMap) { o.DeletionGracePeriodSeconds = new(int64(1)) },
		"grace, other":        func(o *corev1.ConfigMap) { o.DeletionGracePeriodSeconds = new(int64(2)) },
		"no labels":           func(o *corev1.ConfigMap) { o.Labels = map[string]string{} },
		"labels":              func(o *corev1.ConfigMap) { o.Labels = map[string]string{"a": "b"} },
		"label, other":        func(o *corev1.ConfigMap) { o.Labels = map[string]string{"a": "c"} },
		"annotations":         func(o *corev1.ConfigMap) { o.Annotations = map[string]string{"a": "b"} },
		"no owners":           owned([]metav1.OwnerReference{}...),
		"owner":               owned(metav1.OwnerReference{Name: "a"}),
		"controller":          owned(metav1.OwnerReference{Name: "a", Controller: new(true)}),
		"not controller":      owned(metav1.OwnerReference{Name: "a", Controller: new(false)}),
		"finalizer":           func(o *corev1.ConfigMap) { o.Finalizers = []string{"a"} },
		"other finalizer":     func(o *corev1.ConfigMap) { o.Finalizers = []string{"b"} },
		"managed":             managed(nil),
		"managed, with field": managed(metav1.NewFieldsV1("{}")),
		"immutable":           func(o *corev1.ConfigMap) { o.Immutable = new(true) },
		"data":                func(o *corev1.ConfigMap) { o.Data = map[string]string{"a": "b"} },
		"binary":              func(o *corev1.ConfigMap) { o.BinaryData = map[string][]byte{"a": nil} },
		"binary, empty":       func(o *corev1.ConfigMap) { o.BinaryData = map[string][]byte{"a": {}} },
	}
	for first, change := range changes {
		for second, changeOther := range changes {
			a, b := &corev1.ConfigMap{}, &corev1.ConfigMap{}
			change(a)
			changeOther(b)
			if got, want := difference.Identical(a, b), reflect.DeepEqual(a, b); got != want {
				t.Errorf("%s and %s: got identical %v, want %v", first, second, got, want)
			}
		}
	}
}

// Objects of other shapes are compared as reflect.DeepEqual compares them.
func TestIdentical_OtherTypes(t *testing.T) {
	withUnexported := func(n int) *struct{ n int } { return &struct{ n int }{n} }
	values := []any{
		nil, (*corev1.Pod)(nil), (*corev1.ConfigMap)(nil), &corev1.Pod{}, &corev1.ConfigMap{},
		corev1.Pod{},
		1, new(1),
		&unstructured.Unstructured{}, &unstructured.Unstructured{Object: map[string]any{"a": "b"}},
		&unstructured.Unstructured{Object: map[string]any{"a": "b"}}, withUnexported(1), withUnexported(1), withUnexported(2),
		&corev1.Pod{Spec: corev1.PodSpec{NodeName: "a"}}, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "a"}},
	}
	for _, a := range values {
		for _, b := range values {
			if got, want := difference.Identical(a, b), reflect.DeepEqual(a, b); got != want {
				t.Errorf("%#v and %#v: got identical %v, want %v", a, b, got, want)
			}
		}
	}
}

func BenchmarkIdentical(b *testing.B) {
	object := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: "a", Namespace: "b", UID: "c", Labels: map[string]string{"a": "b", "c": "d"},
				OwnerReferences: []metav1.OwnerReference{{Name: "a", Controller: new(true)}},
			},
			Data: map[string]string{"a": string(make([]byte, 1024))},
		}
	}
	one, other := object(), object()
	for name, equal := range map[string]func(a, b any) bool{
		"Identical": difference.Identical, "DeepEqual": reflect.DeepEqual,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !equal(client.Object(one), client.Object(other)) {
					b.Fatal("not equal")
				}
			}
		})
	}
}
