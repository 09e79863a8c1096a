// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// alike reports whether two states are equal, except for versions, UIDs and times. It is fast, because most states are
// equal: the others are compared field by field.
func alike(a, b *snapshot) bool {
	if !slices.Equal(a.kinds, b.kinds) || !maps.Equal(a.cloud, b.cloud) {
		return false
	}
	for i, objects := range a.objects {
		if len(objects) != len(b.objects[i]) {
			return false
		}
		for n, obj := range objects {
			if !sameObject(obj, b.objects[i][n]) {
				return false
			}
		}
	}
	return true
}

func sameObject(a, b client.Object) bool {
	if a == b {
		return true
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Type() == y.Type() && same(x, y)
}

var (
	timeType     = reflect.TypeFor[metav1.Time]()
	microType    = reflect.TypeFor[metav1.MicroTime]()
	metaType     = reflect.TypeFor[metav1.ObjectMeta]()
	quantityType = reflect.TypeFor[resource.Quantity]()
)

func same(a, b reflect.Value) bool {
	switch a.Type() {
	case timeType, microType:
		return a.IsZero() == b.IsZero()
	case metaType:
		x, y := a.Addr().Interface().(*metav1.ObjectMeta), b.Addr().Interface().(*metav1.ObjectMeta)
		return sameMetadata(x, y)
	case quantityType:
		x, y := a.Interface().(resource.Quantity), b.Interface().(resource.Quantity)
		return x.Cmp(y) == 0
	}
	switch a.Kind() {
	case reflect.Struct:
		t := a.Type()
		for i := range a.NumField() {
			if field := t.Field(i); !field.IsExported() || field.Name == "ObservedGeneration" {
				continue
			}
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		x, y := a.Elem(), b.Elem()
		return x.Type() == y.Type() && same(x, y)
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for it := a.MapRange(); it.Next(); {
			other := b.MapIndex(it.Key())
			if !other.IsValid() || !same(it.Value(), other) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}

func sameMetadata(a, b *metav1.ObjectMeta) bool {
	return a.Name == b.Name && a.Namespace == b.Namespace && maps.Equal(a.Labels, b.Labels) &&
		sameAnnotations(a.Annotations, b.Annotations) &&
		slices.Equal(a.Finalizers, b.Finalizers) && a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero() &&
		// UIDs depend on names and numbers, so that they are equal unless an object was recreated. Then the states are
		// compared field by field.
		slices.EqualFunc(a.OwnerReferences, b.OwnerReferences, func(x, y metav1.OwnerReference) bool {
			return same(reflect.ValueOf(x), reflect.ValueOf(y))
		})
}

func sameAnnotations(a, b map[string]string) bool {
	if maps.Equal(a, b) {
		return true
	}
	a, b = maps.Clone(a), maps.Clone(b)
	delete(a, touched)
	delete(b, touched)
	return maps.Equal(a, b)
}
