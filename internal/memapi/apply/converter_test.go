// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/testkit/fixture"
)

// BenchmarkNew measures the first apply to a custom resource, in a process and then in a registry.
func BenchmarkNew(b *testing.B) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(gizmos), definition); err != nil {
		b.Fatal(err)
	}
	patch := &unstructured.Unstructured{}
	text := "apiVersion: apply.example.com/v1\nkind: Gizmo\nmetadata: {name: a, namespace: b}\nspec: {tags: [x]}"
	if err := yaml.Unmarshal([]byte(text), &patch.Object); err != nil {
		b.Fatal(err)
	}
	b.Run("Registry", func(b *testing.B) {
		for b.Loop() {
			if _, err := kinds.NewRegistry(fixture.NewScheme(), definition); err != nil {
				b.Fatal(err)
			}
		}
	})
	registry, err := kinds.NewRegistry(fixture.NewScheme(), definition)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Apply", func(b *testing.B) {
		for b.Loop() {
			if _, err := apply.New(registry).Apply(nil, patch, "a", false, "", start, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
