// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
)

// Compared returns a copy of an observed object without the fields that diff ignores: a user who ignores resource
// versions does not want to paste one. Names and kinds always remain.
func Compared(observed client.Object, diff func(expected, actual client.Object) string) client.Object {
	kept := observed.DeepCopyObject().(client.Object)
	isSame := func() bool { return diff(kept, observed) == "" }
	if !isSame() {
		return kept // diff reports a difference between equal objects
	}
	if u, ok := kept.(runtime.Unstructured); ok {
		content := u.UnstructuredContent()
		clearKeys(content, isSame, "apiVersion", "kind", "metadata")
		if metadata, ok := content["metadata"].(map[string]any); ok {
			clearKeys(metadata, isSame, "name", "generateName", "namespace")
		}
	} else if v := reflect.Indirect(reflect.ValueOf(kept)); v.Kind() == reflect.Struct && v.CanSet() {
		clearFields(v, isSame)
	}

	timeless := kept.DeepCopyObject().(client.Object)
	clearTransitionTimes(reflect.ValueOf(timeless))
	if diff(timeless, observed) == "" {
		return timeless
	}
	return kept
}

// ComparedValue is [Compared] for objects. It returns all other values unchanged.
func ComparedValue(observed any, diff func(expected, actual any) string) any {
	if obj, ok := observed.(client.Object); ok && !nilcheck.IsNil(obj) {
		return Compared(obj, func(expected, actual client.Object) string { return diff(expected, actual) })
	}
	return observed
}

// clearKeys deletes each key, except for the given ones, whose deletion makes no difference.
func clearKeys(content map[string]any, isSame func() bool, except ...string) {
	for key, value := range content {
		if slices.Contains(except, key) {
			continue
		}
		if delete(content, key); !isSame() {
			content[key] = value
		}
	}
}

// clearFields clears each field of an object and of its metadata whose value makes no difference.
func clearFields(v reflect.Value, isSame func() bool) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		switch {
		case !field.IsExported(), value.IsZero(), field.Type == reflect.TypeFor[metav1.TypeMeta]():
		case field.Type == reflect.TypeFor[metav1.ObjectMeta]():
			clearFields(value, isSame)
		case v.Type() == reflect.TypeFor[metav1.ObjectMeta]() &&
			slices.Contains([]string{"Name", "GenerateName", "Namespace"}, field.Name):
		default:
			old := reflect.ValueOf(value.Interface())
			if value.SetZero(); !isSame() {
				value.Set(old)
			}
		}
	}
}

// clearTransitionTimes clears the transition times of all conditions within a value.
func clearTransitionTimes(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		clearTransitionTimes(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			switch field := v.Type().Field(i); {
			case !field.IsExported():
			case field.Name == "LastTransitionTime" && v.Field(i).CanSet():
				v.Field(i).SetZero()
			default:
				clearTransitionTimes(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			clearTransitionTimes(v.Index(i))
		}
	case reflect.Map:
		if content, ok := v.Interface().(map[string]any); ok {
			delete(content, "lastTransitionTime")
		}
		for _, key := range v.MapKeys() {
			clearTransitionTimes(v.MapIndex(key))
		}
	}
}
