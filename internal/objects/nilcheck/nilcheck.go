// SPDX-License-Identifier: Apache-2.0

// Package nilcheck detects nil values behind interfaces.
package nilcheck

import "reflect"

// IsNil reports whether v is nil: nil itself, a nil pointer, function, map and so on behind an interface, or a value
// whose Wrapped method returns one of them.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.UnsafePointer:
		if r.IsNil() {
			return true
		}
	}
	w, ok := v.(interface{ Wrapped() any })
	return ok && IsNil(w.Wrapped())
}

// IsNilPointer reports whether v is nil or a nil pointer. Other nil values may have methods that work, for example an
// empty list of reconcilers.
func IsNilPointer(v any) bool {
	value := reflect.ValueOf(v)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}
