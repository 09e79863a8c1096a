// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/testkit/fixture"
)

func TestEqualIsSemantic(t *testing.T) {
	for _, object := range []client.Object{
		&corev1.ConfigMap{}, &corev1.Pod{}, &appsv1.StatefulSet{}, &corev1.Node{},
		&apiextensionsv1.CustomResourceDefinition{}, &fixture.Resource{},
	} {
		registry := newRegistry(t)
		k := kindOf(t, registry, object)
		t.Run(k.Kind, func(t *testing.T) {
			same := 0
			for seed := range uint64(400) {
				f := filler{Rand: rand.New(rand.NewPCG(seed, 1)), rare: 2 + int(seed%6)}
				a := object.DeepCopyObject().(client.Object)
				f.fill(reflect.ValueOf(a).Elem(), 0)
				clearErrors(a)
				b := a.DeepCopyObject().(client.Object)
				switch seed % 4 {
				case 0:
					f.fill(reflect.ValueOf(b).Elem(), 0)
				case 1:
					f.rare = 20
					f.fill(reflect.ValueOf(b).Elem(), 1)
				case 2:
					k.Normalize(b)
				}
				want := equality.Semantic.DeepEqual(a, b)
				if got := kinds.Equal(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()); got != want {
					t.Fatalf("seed %d: equal %v, want %v\n%+v\n%+v", seed, got, want, a, b)
				}
				if want {
					same++
				}
			}
			if same < 100 || same > 390 {
				t.Errorf("%d of 400 pairs are equal: the test says little", same)
			}
		})
	}
}
