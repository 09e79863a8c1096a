// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/fixture"
)

// BenchmarkUpdate is what a server does with an object that is updated, besides copying and storing it.
func BenchmarkUpdate(b *testing.B) {
	registry := newRegistry(b)
	for _, obj := range []client.Object{sampleConfigMap(), sampleDeployment(), &fixture.Resource{Spec: fixture.ResourceSpec{Fields: map[string]string{"a": "b"}}}} {
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
