// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/testkit/fixture"
)

func TestErrorsAreInOrder(t *testing.T) {
	typed, _ := websiteKinds(t)
	registry := newRegistry(t)
	bad := map[string]string{"a b": "", "c d": "", "e f": "g h", "i": "j k"}
	for _, c := range []struct {
		name string
		kind *kinds.Kind
		obj  func() client.Object
	}{
		{"ConfigMap", kindOf(t, registry, &corev1.ConfigMap{}), func() client.Object {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", Labels: bad}, Data: bad}
		}},
		{"Deployment", kindOf(t, registry, &appsv1.Deployment{}), func() client.Object {
			d := sampleDeployment()
			d.Spec.Template.Labels, d.Spec.Template.Spec.NodeSelector = bad, bad
			d.Spec.Selector.MatchLabels = bad
			d.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
				Limits: corev1.ResourceList{
					"cpu": resource.MustParse("1"), "memory": resource.MustParse("1"), "a": resource.MustParse("1"),
				},
				Requests: corev1.ResourceList{
					"cpu": resource.MustParse("2"), "memory": resource.MustParse("2"), "a": resource.MustParse("2"),
				},
			}
			return d
		}},
		{"custom", typed, func() client.Object {
			return &website{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("a", rand.Int()), Namespace: "b", Annotations: bad},
				Spec: websiteSpec{
					Class: "huge", Replicas: new(int32(-1)), Hosts: []string{"a", "a"},
				}, Status: websiteStatus{Phase: "x"},
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.kind.Validate(c.obj()).ToAggregate().Error()
			for range 50 {
				if diff := cmp.Diff(want, c.kind.Validate(c.obj()).ToAggregate().Error()); diff != "" {
					t.Fatalf("errors of another run (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// BenchmarkUpdate measures an update without the copying and storing of the object.
func BenchmarkUpdate(b *testing.B) {
	registry := newRegistry(b)
	for _, obj := range []client.Object{
		sampleConfigMap(), sampleDeployment(),
		&fixture.Resource{Spec: fixture.ResourceSpec{Fields: map[string]string{"a": "b"}}},
	} {
		k := kindOf(b, registry, obj)
		obj.SetUID("1")
		obj.SetName("a")
		obj.SetNamespace("b")
		obj.SetResourceVersion("1")
		k.Normalize(obj)
		if err := k.Default(obj); err != nil {
			b.Fatal(err)
		}
		k.PrepareForCreate(obj)
		if errs := k.Validate(obj); len(errs) > 0 {
			b.Fatal(errs)
		}
		old := obj.DeepCopyObject().(client.Object)
		b.Run(k.Kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				k.Normalize(obj)
				if err := k.Default(obj); err != nil {
					b.Fatal(err)
				}
				k.PrepareForUpdate(obj, old)
				if errs := k.ValidateUpdate(obj, old); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}
