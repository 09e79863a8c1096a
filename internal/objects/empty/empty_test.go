// SPDX-License-Identifier: Apache-2.0

package empty_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/empty"
)

func TestLike(t *testing.T) {
	kind := map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}
	for name, tc := range map[string]struct{ like, want runtime.Object }{
		"typed": {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &corev1.ConfigMap{}},
		"list":  {&corev1.ConfigMapList{Items: []corev1.ConfigMap{{}}}, &corev1.ConfigMapList{}},
		"unstructured": {
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"size": int64(1)},
			}},
			&unstructured.Unstructured{Object: kind},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, empty.Like(tc.like)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOf(t *testing.T) {
	configMap := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	unknown := schema.GroupVersionKind{Version: "v1", Kind: "Widget"}
	untyped, metadata := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	untyped.SetGroupVersionKind(unknown)
	metadata.SetGroupVersionKind(configMap)
	for name, tc := range map[string]struct {
		gvk  schema.GroupVersionKind
		like runtime.Object
		want client.Object
	}{
		"typed":             {configMap, nil, &corev1.ConfigMap{}},
		"typed, of a list":  {configMap, &corev1.ConfigMapList{}, &corev1.ConfigMap{}},
		"unstructured":      {unknown, &unstructured.Unstructured{}, untyped},
		"unstructured list": {unknown, &unstructured.UnstructuredList{}, untyped},
		"metadata":          {configMap, &metav1.PartialObjectMetadata{}, metadata},
		"metadata list":     {configMap, &metav1.PartialObjectMetadataList{}, metadata},
		"unknown":           {unknown, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, empty.Of(tc.gvk, tc.like, clientgoscheme.Scheme)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
