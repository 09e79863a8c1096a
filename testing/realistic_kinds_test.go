// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"bytes"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/fixture"
)

// What is known here to have a status is what the fake client knows.
func TestKindsWithStatus(t *testing.T) {
	scheme := fixture.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, _ := mustFake(t, fakeOptions{scheme: scheme})
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
			t.Errorf("%s: has a status sub resource: %t", gvk, has)
		}
	}
	if kinds < 150 {
		t.Errorf("looked at %d kinds only", kinds)
	}
}

// testGenerations compares which kinds have a generation to a server.
func testGenerations(t *testing.T, server client.Client) {
	data, err := os.ReadFile("testdata/kinds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := newRealism(fakeOptions{scheme: fixture.NewScheme()})
	unseen := kindsWithStatus.Clone()
	for manifest := range bytes.SplitSeq(data, []byte("---\n")) {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(manifest, &obj.Object); err != nil {
			t.Fatal(err)
		}
		gvk := obj.GroupVersionKind()
		unseen.Delete(gvk)
		if err := server.Create(t.Context(), obj); err != nil {
			t.Errorf("%s: %v", gvk, err)
			continue
		}
		if has := obj.GetGeneration() != 0; has != r.hasGeneration(gvk) {
			t.Errorf("%s: a server keeps its generation: %t", gvk, has)
		}
	}
	for gvk := range unseen {
		if gvk.Version != "v1beta2" { // which servers do not serve any longer
			t.Errorf("%s is not in testdata", gvk)
		}
	}
}
