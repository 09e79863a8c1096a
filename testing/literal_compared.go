// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compared returns a copy of an observed object without what diff does not look at, for people to paste: who ignores
// resource versions does not need to see one. Names and kinds always remain.
func compared(observed client.Object, diff func(expected, actual client.Object) string) client.Object {
	kept := observed.DeepCopyObject().(client.Object)
	isSame := func() bool { return diff(kept, observed) == "" }
	if !isSame() {
		return kept // nothing is ever the same for such a Differ
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

// comparedValue is [compared] for values that are objects, and others as they are.
func comparedValue(observed any, diff func(expected, actual any) string) any {
	if obj, ok := observed.(client.Object); ok && !isNil(obj) {
		return compared(obj, func(expected, actual client.Object) string { return diff(expected, actual) })
	}
	return observed
}

// clearKeys deletes all keys but some, unless that makes a difference.
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

// clearFields empties the fields of an object and of its metadata, unless that makes a difference.
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

// clearTransitionTimes empties when conditions changed, wherever there are any.
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
