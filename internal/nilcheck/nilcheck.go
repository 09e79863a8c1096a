// SPDX-License-Identifier: Apache-2.0

// Package nilcheck finds handlers that are not there.
package nilcheck

import "reflect"

// IsNil is true for nil, for a pointer, function, map and so on that is nil behind an interface, and for what is made of one: that has a method Wrapped.
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
