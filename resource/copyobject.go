// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"fmt"
	"reflect"

	"trueup.dev/internal/objects/nilcheck"
)

// CopyObject returns a copy of an object, which must be a pointer to a struct. It does not use the DeepCopy methods of
// the struct itself, which may therefore call it. It uses the methods of its fields, as described for
// [TypedSpecStatusObject]. The copy of nil is nil. It panics if the type of in is not an [Object], as a failed type
// assertion does.
func CopyObject(in any) Object {
	if nilcheck.IsNilPointer(in) {
		return nil
	}
	out := reflect.New(reflect.TypeOf(in).Elem())
	out.Elem().Set(reflect.ValueOf(in).Elem())
	copyPlanOfFields(out.Elem().Type()).apply(out.Elem())
	return out.Interface().(Object)
}

// CopyObjectInto makes out a deep copy of in. Both must be pointers to structs. It does not use the DeepCopy methods of
// the struct itself, which may therefore call it:
//
//	func (s *WidgetSpec) DeepCopyInto(out *WidgetSpec) { _ = resource.CopyObjectInto(out, s) }
//
// It uses the methods of its fields, as described for [TypedSpecStatusObject]. The error reports arguments that are not
// pointers to structs, and nil.
func CopyObjectInto[T any](out, in T) error {
	from, to := reflect.ValueOf(in), reflect.ValueOf(out)
	for _, v := range []reflect.Value{from, to} {
		if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return fmt.Errorf("cannot copy %T into %T: both must be pointers to structs, and not nil", in, out)
		}
	}
	if from.Type() != to.Type() { // only if T is an interface
		return fmt.Errorf("cannot copy %T into %T: the types must be equal", in, out)
	}
	to.Elem().Set(from.Elem())
	copyPlanOfFields(to.Elem().Type()).apply(to.Elem())
	return nil
}
