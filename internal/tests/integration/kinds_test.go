// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// Kinds without a Go type.
var (
	widgetKind = schema.GroupVersionKind{Group: "integration.trueup.dev", Version: "v1", Kind: "Widget"}
	gadgetKind = schema.GroupVersionKind{Group: "integration.trueup.dev", Version: "v1", Kind: "Gadget"}
)

// crds are the kinds of the tests. Schemas keep unknown fields, except the schema of gizmos.
func crds() []any {
	return []any{
		crd(fixture.GroupVersion.WithKind("Resource"), "resources"),
		crd(widgetKind, "widgets"),
		crd(gadgetKind, "gadgets"),
		gizmoCRD(),
		strictCRD(),
		statuslessCRD(),
	}
}

func crd(kind schema.GroupVersionKind, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind.Kind, ListKind: kind.Kind + "List", Plural: plural, Singular: strings.ToLower(kind.Kind),
			},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
				},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
			}},
		},
	}
}

func newResource(name string, fields map[string]string) *fixture.Resource {
	return &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: fixture.ResourceSpec{Fields: fields}}
}

func newConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func newUnstructured(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetName(name)
	return u
}

func newUnstructuredList(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// configMapOf returns a reconciler for one ConfigMap, whose suffix distinguishes it from the ConfigMaps of other
// reconcilers.
func configMapOf[T client.Object](
	suffix string, fields func(T) map[string]string,
) *reconcilers.ChildReconciler[T, *corev1.ConfigMap, *corev1.ConfigMapList] {
	return &reconcilers.ChildReconciler[T, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(_ context.Context, parent T) (*corev1.ConfigMap, error) {
			child := newConfigMap(parent.GetName()+suffix, fields(parent))
			child.Namespace = parent.GetNamespace()
			return child, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		OurChild: func(parent T, child *corev1.ConfigMap) bool {
			return child.Name == parent.GetName()+suffix
		},
		ReflectChildStatusOnParent: func(context.Context, T, *corev1.ConfigMap, error) {},
	}
}
