// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
)

// Measures the API of a case: one store for Client and another one for APIReader, with an object in both.
func BenchmarkNew(b *testing.B) {
	scheme := fixture.NewScheme()
	for _, test := range []struct {
		name      string
		realistic bool
		use       func(c client.Client) error
	}{
		{name: "two stores"},
		{name: "two stores, Realistic", realistic: true},
		{name: "two stores and a create", use: func(c client.Client) error {
			return c.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: objectMeta("one")})
		}},
		{name: "two stores and a create, Realistic", realistic: true, use: func(c client.Client) error {
			return c.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: objectMeta("one")})
		}},
		{name: "two stores and a create of an unknown kind", use: func(c client.Client) error {
			return c.Create(b.Context(), newGadget("one"))
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range 2 {
					c, _ := mustFake(b, Options{
						Scheme: scheme, Realistic: test.realistic,
						Given:              []client.Object{&fixture.Resource{ObjectMeta: objectMeta("one")}},
						StatusSubresources: []client.Object{&fixture.Resource{}},
					})
					if i == 0 && test.use != nil {
						if err := test.use(c); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
		})
	}
}
