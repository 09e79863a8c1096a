// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// same reports whether two objects of a type are equal on the wire. Semantic equality is slow, so it is checked only
// for fields that differ in Go, for example times in different locations.
func same(a, b client.Object) bool {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range x.NumField() {
		if f, g := x.Field(i).Addr().Interface(), y.Field(i).Addr().Interface(); !reflect.DeepEqual(f, g) &&
			!equality.Semantic.DeepEqual(f, g) {
			return false
		}
	}
	return true
}

// sameMetadata reports whether two objects have equal metadata, except for what a server counts itself. If it returns
// false, they may still be equal.
func sameMetadata(a, b client.Object) bool {
	x, y := metadataPointer(a), metadataPointer(b)
	if x == nil || y == nil {
		return false
	}
	m := *x
	m.Generation, m.ManagedFields = y.Generation, y.ManagedFields
	return reflect.DeepEqual(&m, y)
}

// metadataPointer returns the metadata of a typed object.
func metadataPointer(obj client.Object) *metav1.ObjectMeta {
	if accessor, ok := obj.(metav1.ObjectMetaAccessor); ok {
		m, _ := accessor.GetObjectMeta().(*metav1.ObjectMeta)
		return m
	}
	return nil
}
