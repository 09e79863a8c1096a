// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/testkit/fixture"
)

func newRegistry(t testing.TB) *kinds.Registry {
	t.Helper()
	scheme := fixture.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	registry, err := kinds.NewRegistry(scheme)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

func kindOf(t testing.TB, registry *kinds.Registry, obj client.Object) *kinds.Kind {
	t.Helper()
	gvk, err := apiutil.GVKForObject(obj, registry.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	k, ok := registry.For(gvk)
	if !ok {
		t.Fatalf("%s is not served", gvk)
	}
	return k
}

type protobuf interface {
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// overTheWire returns an object as a client receives it after sending it.
func overTheWire(t *testing.T, obj client.Object) client.Object {
	t.Helper()
	decoded := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if p, ok := obj.(protobuf); ok &&
		reflect.TypeOf(obj).Elem().PkgPath() != "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1" {
		data, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := decoded.(protobuf).Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		decoded.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind()) // it is not encoded
		return decoded
	}
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	if err := utiljson.Unmarshal(data, decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// exactly compares like ==, but quantities by their text.
var exactly = cmp.Options{
	cmp.Comparer(func(a, b resource.Quantity) bool { return a.String() == b.String() && a.Format == b.Format }),
	cmp.Comparer(func(a, b metav1.Time) bool { return a == b }),
	cmp.Comparer(func(a, b metav1.MicroTime) bool { return a == b }),
}

func TestNormalizeIsAWayOverTheWire(t *testing.T) {
	registry := newRegistry(t)
	for _, object := range []client.Object{
		&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &corev1.Pod{}, &corev1.Event{}, &corev1.Node{},
		&corev1.PersistentVolumeClaim{},
		&appsv1.Deployment{}, &appsv1.StatefulSet{}, &batchv1.Job{}, &apiextensionsv1.CustomResourceDefinition{},
		&fixture.Resource{}, &fixture.ResourceNoStatus{}, &fixture.ResourceLegacyConditions{},
	} {
		k := kindOf(t, registry, object)
		t.Run(k.Kind, func(t *testing.T) {
			for seed := range uint64(300) {
				f := filler{Rand: rand.New(rand.NewPCG(seed, 0)), rare: 1 + int(seed%4)}
				obj := object.DeepCopyObject().(client.Object)
				f.fill(reflect.ValueOf(obj).Elem(), 0)
				clearErrors(obj)
				given := obj.DeepCopyObject().(client.Object)
				want := overTheWire(t, obj.DeepCopyObject().(client.Object))
				k.Normalize(obj)
				if diff := cmp.Diff(want, obj, exactly); diff != "" {
					t.Fatalf("seed %d (-want +got):\n%s\ngiven: %+v", seed, diff, given)
				}
				again := obj.DeepCopyObject().(client.Object)
				k.Normalize(again)
				if diff := cmp.Diff(obj, again, exactly); diff != "" {
					t.Fatalf("seed %d, normalized twice (-once +twice):\n%s", seed, diff)
				}
			}
		})
	}
}

// clearErrors removes values that deliberately fail to encode.
func clearErrors(obj client.Object) {
	if r, ok := obj.(*fixture.Resource); ok {
		r.Spec.ErrOnMarshal, r.Spec.ErrOnUnmarshal = false, false
	}
	if r, ok := obj.(*fixture.ResourceNoStatus); ok {
		r.Spec.ErrOnMarshal, r.Spec.ErrOnUnmarshal = false, false
	}
	if r, ok := obj.(*fixture.ResourceLegacyConditions); ok {
		r.Spec.ErrOnMarshal, r.Spec.ErrOnUnmarshal = false, false
	}
}

func TestNormalizeUnstructured(t *testing.T) {
	k := kindOf(t, newRegistry(t), &fixture.Resource{})
	obj := &unstructured.Unstructured{
		Object: map[string]any{
			"a": 1, "b": []string{"x"}, "c": float64(2), "d": map[string]any{"e": 1.5, "f": map[string]any(nil)},
		},
	}
	k.Normalize(obj)
	want := map[string]any{"a": int64(1), "b": []any{"x"}, "c": int64(2), "d": map[string]any{"e": 1.5, "f": nil}}
	if diff := cmp.Diff(want, obj.Object); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func BenchmarkNormalize(b *testing.B) {
	registry := newRegistry(b)
	for _, obj := range []client.Object{
		sampleConfigMap(), sampleDeployment(),
		&fixture.Resource{Spec: fixture.ResourceSpec{Fields: map[string]string{"a": "b"}}},
	} {
		k := kindOf(b, registry, obj)
		k.Normalize(obj)
		b.Run(k.Kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				k.Normalize(obj)
			}
		})
	}
}
