// SPDX-License-Identifier: Apache-2.0

package ctrlfields

import "reflect"

// field returns a pointer to a field of an addressable struct, if the field has the type T.
func field[T any](of reflect.Value, name string) (*T, bool) {
	found := of.FieldByName(name)
	if !found.IsValid() || found.Type() != reflect.TypeFor[T]() {
		return nil, false
	}
	return (*T)(found.Addr().UnsafePointer()), true
}

// exported returns the value of an exported field whose type depends on type parameters, if the value is a T.
func exported[T any](of reflect.Value, name string) (value T, ok bool) {
	if found := of.FieldByName(name); found.IsValid() && found.CanInterface() {
		value, ok = found.Interface().(T)
	}
	return value, ok
}

// structOf returns the addressable struct that a pointer in an interface points to.
func structOf(pointer any) (reflect.Value, bool) {
	value := reflect.ValueOf(pointer)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	return value.Elem(), true
}
