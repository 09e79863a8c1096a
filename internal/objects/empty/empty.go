// SPDX-License-Identifier: Apache-2.0

// Package empty creates empty objects.
package empty

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Like returns an empty object of the type and kind of another object. Typed objects get their kind from the scheme,
// but unstructured objects and ducks must carry it. It panics if obj is nil or not a pointer.
func Like[T runtime.Object](obj T) T {
	empty := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
	empty.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return empty
}

// Of returns an empty object of a kind in the form of an object, or of a list: unstructured, only its metadata, or the
// type that the scheme has. It returns nil if the scheme does not know the kind.
func Of(gvk schema.GroupVersionKind, like runtime.Object, scheme *runtime.Scheme) client.Object {
	switch like.(type) {
	case runtime.Unstructured:
		blank := &unstructured.Unstructured{}
		blank.SetGroupVersionKind(gvk)
		return blank
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		blank := &metav1.PartialObjectMetadata{}
		blank.SetGroupVersionKind(gvk)
		return blank
	}
	created, err := scheme.New(gvk)
	if err != nil {
		return nil
	}
	blank, _ := created.(client.Object)
	return blank
}
