// SPDX-License-Identifier: Apache-2.0

package defaults

import "reflect"

// KeepUnset reverts defaults that stored does not have, because a server of another version has other defaults. It
// compares obj with its state before the defaults were set and with the stored object. All three must have the same Go
// type. Fields of obj that got defaults must not be shared with the others.
func KeepUnset(obj, before, stored any) {
	keepUnset(reflect.ValueOf(obj), reflect.ValueOf(before), reflect.ValueOf(stored))
}

func keepUnset(obj, before, stored reflect.Value) {
	if obj.Kind() != before.Kind() || obj.Kind() != stored.Kind() {
		return
	}
	switch obj.Kind() {
	case reflect.Pointer:
		if !obj.IsNil() && !before.IsNil() && !stored.IsNil() {
			keepUnset(obj.Elem(), before.Elem(), stored.Elem())
		}
	case reflect.Struct:
		for i := range obj.NumField() {
			field := obj.Field(i)
			switch {
			case !field.CanSet():
			case field.IsZero(): // unchanged, so it may be shared
			case before.Field(i).IsZero() && stored.Field(i).IsZero():
				field.SetZero()
			case before.Field(i).IsZero() && field.Kind() == reflect.Pointer:
				// The struct was created by the defaults: it did not exist before.
				if !field.IsNil() && !stored.Field(i).IsNil() {
					keepUnset(field.Elem(), reflect.Zero(field.Type().Elem()), stored.Field(i).Elem())
				}
			default:
				keepUnset(field, before.Field(i), stored.Field(i))
			}
		}
	case reflect.Slice:
		if obj.Len() == before.Len() && obj.Len() == stored.Len() {
			for i := range obj.Len() {
				keepUnset(obj.Index(i), before.Index(i), stored.Index(i))
			}
		}
	}
}
