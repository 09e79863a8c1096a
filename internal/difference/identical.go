// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Identical reports what [reflect.DeepEqual] reports for pointers to two objects. It takes less than half of the time,
// because it compares most of the metadata without reflection.
func Identical(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if !isObject(va) || !isObject(vb) || va.Type() != vb.Type() {
		return reflect.DeepEqual(a, b)
	}
	va, vb = va.Elem(), vb.Elem()
	for i := range va.NumField() {
		if !va.Field(i).CanInterface() {
			return reflect.DeepEqual(a, b)
		}
		if !identicalField(va.Field(i).Addr().Interface(), vb.Field(i).Addr().Interface()) {
			return false
		}
	}
	return true
}

func isObject(v reflect.Value) bool {
	return v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct
}

// identicalField compares two fields, given pointers to them.
func identicalField(a, b any) bool {
	switch a := a.(type) {
	case *metav1.TypeMeta:
		return *a == *b.(*metav1.TypeMeta)
	case *metav1.ObjectMeta:
		return identicalMetadata(a, b.(*metav1.ObjectMeta))
	case *map[string]string:
		return identicalMaps(*a, *b.(*map[string]string))
	}
	return reflect.DeepEqual(a, b)
}

func identicalMetadata(a, b *metav1.ObjectMeta) bool {
	return a.Name == b.Name && a.GenerateName == b.GenerateName && a.Namespace == b.Namespace &&
		a.SelfLink == b.SelfLink && //nolint:staticcheck // a server no longer sets it, but a test may
		a.UID == b.UID && a.ResourceVersion == b.ResourceVersion &&
		a.Generation == b.Generation && identicalTimes(&a.CreationTimestamp, &b.CreationTimestamp) &&
		identicalTimes(a.DeletionTimestamp, b.DeletionTimestamp) &&
		identicalPointers(a.DeletionGracePeriodSeconds, b.DeletionGracePeriodSeconds) &&
		identicalMaps(a.Labels, b.Labels) && identicalMaps(a.Annotations, b.Annotations) &&
		identicalSlices(a.OwnerReferences, b.OwnerReferences, identicalOwners) &&
		identicalSlices(a.Finalizers, b.Finalizers, func(a, b string) bool { return a == b }) &&
		identicalSlices(a.ManagedFields, b.ManagedFields, func(a, b metav1.ManagedFieldsEntry) bool {
			return reflect.DeepEqual(a, b)
		})
}

func identicalTimes(a, b *metav1.Time) bool {
	return a != nil && b != nil && *a == *b || reflect.DeepEqual(a, b)
}

func identicalOwners(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		identicalPointers(a.Controller, b.Controller) && identicalPointers(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

func identicalPointers[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func identicalMaps(a, b map[string]string) bool { return (a == nil) == (b == nil) && maps.Equal(a, b) }

func identicalSlices[T any](a, b []T, equal func(T, T) bool) bool {
	if (a == nil) != (b == nil) || len(a) != len(b) {
		return false
	}
	return len(a) == 0 || &a[0] == &b[0] || slices.EqualFunc(a, b, equal)
}
