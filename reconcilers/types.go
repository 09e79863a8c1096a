// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/duck"
	"trueup.dev/internal/objects/nilcheck"
)

// newEmpty returns a new value of the struct that T points to. It returns nil if T is an interface.
func newEmpty[T any]() T {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		var zero T
		return zero
	}
	return reflect.New(t.Elem()).Interface().(T)
}

// nameKind sets the kind of an object that does not carry one. Caches store typed objects without a kind.
func nameKind(obj client.Object, gvk schema.GroupVersionKind) {
	if kind := obj.GetObjectKind(); kind.GroupVersionKind().Empty() {
		kind.SetGroupVersionKind(gvk)
	}
}

// typeName returns the kind of an object. If the object does not carry a kind, typeName returns the name of its Go type
// without type arguments.
func typeName(obj any) string {
	if nilcheck.IsNilPointer(obj) {
		return ""
	}
	if obj, ok := obj.(runtime.Object); ok {
		if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
			return kind
		}
	}
	t := reflect.TypeOf(obj)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// isGeneric reports whether obj has a generic Go type. The name of such a type is not the kind.
func isGeneric(obj any) bool {
	return !nilcheck.IsNilPointer(obj) && strings.Contains(reflect.TypeOf(obj).String(), "[")
}

// watchable returns the object to pass to a watch. Ducks are watched as unstructured objects of their kind.
func watchable(obj client.Object, scheme *runtime.Scheme) client.Object {
	if !duck.IsDuck(obj, scheme) {
		return obj
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return u
}

// listItems returns the items of a list without copying them.
func listItems[T client.Object](list client.ObjectList) ([]T, error) {
	items := []T{}
	err := meta.EachListItem(list, func(obj runtime.Object) error {
		item, ok := obj.(T)
		if !ok {
			return fmt.Errorf("items of %T must be %T, got %T", list, item, obj)
		}
		items = append(items, item)
		return nil
	})
	return items, err
}
