// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// apply applies a manifest with one object in the namespace, as "kubectl apply --server-side" does.
func (p *process) apply(t *testing.T, namespace, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(p.client.Discovery()))
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatal(err)
	}
	content, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	patch := p.dynamic.Resource(mapping.Resource).Patch
	if mapping.Scope.Name() == "namespace" {
		patch = p.dynamic.Resource(mapping.Resource).Namespace(namespace).Patch
	}
	applied, err := patch(t.Context(), object.GetName(), types.ApplyPatchType, content,
		metav1.PatchOptions{FieldManager: "test", Force: new(true)})
	if err != nil {
		t.Fatalf("applying %s %s: %v", kind.Kind, object.GetName(), err)
	}
	return applied
}
