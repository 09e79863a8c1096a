// SPDX-License-Identifier: Apache-2.0

// Package empty creates empty objects.
package empty

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// Like returns an empty object of the type and kind of another object. Typed objects get their kind from the scheme,
// but unstructured objects and ducks must carry it. It panics if obj is nil or not a pointer.
func Like[T runtime.Object](obj T) T {
	empty := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
	empty.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return empty
}
