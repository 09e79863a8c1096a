// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/testkit/fixture"
)

func TestKindsThatAreServed(t *testing.T) {
	registry := newRegistry(t)
	for _, c := range []struct {
		gvk                        schema.GroupVersionKind
		served, status, namespaced bool
	}{
		{fixture.GroupVersion.WithKind("Resource"), true, true, true},
		{fixture.GroupVersion.WithKind("ResourceNoStatus"), true, false, true},
		{fixture.GroupVersion.WithKind("ResourceList"), false, false, false},
		{fixture.GroupVersion.WithKind("DeleteOptions"), false, false, false},
		{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, true, true, false},
		{schema.GroupVersionKind{Version: "v1", Kind: "Binding"}, false, false, false},
		{schema.GroupVersionKind{Group: "extensions", Version: "v1beta1", Kind: "Ingress"}, false, false, false},
		{schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Website"}, false, false, false},
	} {
		k, ok := registry.For(c.gvk)
		if ok != c.served {
			t.Errorf("%s: served %v, want %v", c.gvk, ok, c.served)
		}
		if ok && (k.Status != c.status || k.Namespaced != c.namespaced) {
			t.Errorf("%s: status %v, namespaced %v, want %v, %v", c.gvk, k.Status, k.Namespaced, c.status, c.namespaced)
		}
		mapping, err := registry.Mapper().RESTMapping(c.gvk.GroupKind(), c.gvk.Version)
		if isList := strings.HasSuffix(c.gvk.Kind, "List"); meta.IsNoMatchError(err) == (c.served || isList) {
			t.Errorf("%s: mapping error %v", c.gvk, err)
		}
		if ok && mapping.Resource.Resource != k.Plural {
			t.Errorf("%s: resource %q, want %q", c.gvk, mapping.Resource.Resource, k.Plural)
		}
	}
}

// TestMapperKnowsLists tests mappings of lists without a version, which the mapper of client-go has.
func TestMapperKnowsLists(t *testing.T) {
	for gvk, want := range map[schema.GroupVersionKind]meta.RESTScopeName{
		fixture.GroupVersion.WithKind("ResourceList"): meta.RESTScopeNameNamespace,
		{Version: "v1", Kind: "NamespaceList"}:        meta.RESTScopeNameRoot,
		{Version: "v1", Kind: "Pod"}:                  meta.RESTScopeNameNamespace,
	} {
		mapping, err := newRegistry(t).Mapper().RESTMapping(gvk.GroupKind())
		if err != nil || mapping.GroupVersionKind != gvk || mapping.Scope.Name() != want {
			t.Errorf("%s: mapping %v, error %v, want scope %s", gvk, mapping, err, want)
		}
	}
}

func TestDefinitionsAreServedOnce(t *testing.T) {
	_, err := kinds.NewRegistry(runtime.NewScheme(), definition(t, websites), definition(t, websites))
	if err == nil || !strings.Contains(err.Error(), "example.com/v1, Kind=Website is defined already") {
		t.Errorf("error %v", err)
	}
}

// TestKindsOutsideTheScheme tests a registry whose scheme does not have the built-in kinds.
func TestKindsOutsideTheScheme(t *testing.T) {
	registry, err := kinds.NewRegistry(runtime.NewScheme())
	if err != nil {
		t.Fatal(err)
	}
	k, ok := registry.For(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	if !ok {
		t.Fatal("secrets are not served")
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
			"name": "a", "namespace": "b", "resourceVersion": "1",
		},
		"stringData": map[string]any{"a": "b"},
	}}
	if err := k.Default(obj); err != nil {
		t.Fatal(err)
	}
	k.PrepareForCreate(obj)
	want := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
			"name": "a", "namespace": "b", "resourceVersion": "1",
		},
		"data": map[string]any{"a": "Yg=="}, "type": "Opaque",
	}
	if diff := cmp.Diff(want, obj.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if errs := k.Validate(obj); len(errs) > 0 {
		t.Errorf("errors %v", errs)
	}
	changed := obj.DeepCopy()
	changed.Object["type"] = "other"
	k.PrepareForUpdate(changed, obj)
	if errs := k.ValidateUpdate(changed, obj); len(errs) != 1 || errs[0].Field != "type" {
		t.Errorf("errors %v, want one about the type", errs)
	}
}
