// SPDX-License-Identifier: Apache-2.0

package defaults

import "reflect"

// KeepUnset takes back what was filled in and stored does not have: a server of another version has other defaults. It compares obj with what it was before it
// was filled in, and with the stored object. All three are of the same
// Go type, and obj shares nothing with the others that was filled in.
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
			case field.IsZero(): // nothing is written: it may be shared after all
			case before.Field(i).IsZero() && stored.Field(i).IsZero():
				field.SetZero()
			case before.Field(i).IsZero() && field.Kind() == reflect.Pointer:
				// A struct that was filled in as a whole: none of it was there before.
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
