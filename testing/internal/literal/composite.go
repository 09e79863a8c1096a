// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// isComposite reports whether a value is written as a composite literal, which can follow an &.
func isComposite(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct, reflect.Array:
		return true
	case reflect.Map, reflect.Slice:
		return !v.IsNil() && !isBytes(v.Type())
	}
	return false
}

func (p *printer) composite(v reflect.Value, at position) string {
	t := v.Type()
	var elements []string
	switch t.Kind() {
	case reflect.Struct:
		elements = p.fields(v)
	case reflect.Map:
		for _, key := range sortedKeys(v) {
			elements = append(elements, p.print(key, element)+": "+p.print(v.MapIndex(key), element))
		}
	default:
		for i := range v.Len() {
			elements = append(elements, p.print(v.Index(i), element))
		}
	}
	if at == element {
		return braces("", elements)
	}
	return braces(p.typeName(t), elements)
}

// fields prints the fields of a struct that are set and that a test can set.
func (p *printer) fields(v reflect.Value) []string {
	t := v.Type()
	var fields []string
	for i := range t.NumField() {
		field, value := t.Field(i), v.Field(i)
		switch {
		case !field.IsExported(), isZero(value):
		case field.Type == reflect.TypeFor[metav1.TypeMeta]() && p.impliesKind(t):
		case isComposite(value) && !p.writable(field.Type):
		default:
			fields = append(fields, field.Name+": "+p.field(t, field.Name, value))
		}
	}
	return fields
}

// impliesKind reports whether a Go type stands for one kind, so that its objects need not state their kind. Without a
// scheme, it assumes that of all types except bare metadata.
func (p *packages) impliesKind(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[metav1.PartialObjectMetadata](), reflect.TypeFor[metav1.PartialObjectMetadataList]():
		return false
	}
	object, ok := reflect.New(t).Interface().(runtime.Object)
	if !ok {
		return false
	}
	if len(p.schemes) == 0 {
		return true
	}
	return slices.ContainsFunc(p.schemes, func(scheme *runtime.Scheme) bool {
		kinds, _, err := scheme.ObjectKinds(object)
		return err == nil && len(kinds) > 0
	})
}

// isZero reports whether a value is zero. A zero time with a location is zero, too.
func isZero(v reflect.Value) bool {
	if v.IsZero() {
		return true
	}
	switch t := v.Interface().(type) {
	case metav1.Time:
		return t.IsZero()
	case metav1.MicroTime:
		return t.IsZero()
	case time.Time:
		return t.IsZero()
	}
	return false
}

func sortedKeys(v reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
		switch {
		case a.CanInt() && b.CanInt():
			return cmp.Compare(a.Int(), b.Int())
		case a.CanUint() && b.CanUint():
			return cmp.Compare(a.Uint(), b.Uint())
		case a.CanFloat() && b.CanFloat():
			return cmp.Compare(a.Float(), b.Float())
		default:
			return cmp.Compare(fmt.Sprintf("%v %[1]T", a.Interface()), fmt.Sprintf("%v %[1]T", b.Interface()))
		}
	})
}
