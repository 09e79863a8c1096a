// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/testkit/fixture"
)

// The fake client has a status subresource for exactly these kinds.
func TestKindsWithStatus(t *testing.T) {
	scheme := fixture.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, _ := mustFake(t, Options{Scheme: scheme})
	kinds := 0
	for gvk := range scheme.AllKnownTypes() {
		goType, err := scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		obj, ok := goType.(client.Object)
		if gvks, _, _ := scheme.ObjectKinds(goType); !ok || len(gvks) != 1 {
			continue
		}
		kinds++
		obj.SetName("one")
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatalf("%s: %v", gvk, err)
		}
		if has := c.Status().Update(t.Context(), obj) == nil; has != kindsWithStatus.Has(gvk) {
			t.Errorf("%s: has a status subresource: %t", gvk, has)
		}
	}
	if kinds < 150 {
		t.Errorf("compared only %d kinds", kinds)
	}
}

// The comparison with a server in package testing creates all kinds with a status.
func TestKindsWithStatusAreCompared(t *testing.T) {
	data, err := os.ReadFile("../../testdata/kinds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	missing := kindsWithStatus.Clone()
	for manifest := range bytes.SplitSeq(data, []byte("---\n")) {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(manifest, &obj.Object); err != nil {
			t.Fatal(err)
		}
		missing.Delete(obj.GroupVersionKind())
	}
	for gvk := range missing {
		if gvk.Version != "v1beta2" { // no longer served
			t.Errorf("%s is not in testdata/kinds.yaml", gvk)
		}
	}
}

// The API in memory that converge uses, which is compared with a server too, counts the same generations.
func TestCountsGenerations(t *testing.T) {
	registry, err := kinds.NewRegistry(fixture.NewScheme())
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for gvk := range fixture.NewScheme().AllKnownTypes() {
		kind, served := registry.For(gvk)
		if !served {
			continue
		}
		compared++
		if got := CountsGenerations(gvk.GroupKind()); got != kind.Generations {
			t.Errorf("CountsGenerations(%s) = %t, want %t", gvk.GroupKind(), got, kind.Generations)
		}
	}
	if compared < 60 {
		t.Errorf("compared only %d kinds", compared)
	}
}
