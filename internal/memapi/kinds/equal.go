// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"bytes"
	"maps"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// equal is equality.Semantic.DeepEqual for values of the same type, compiled for that type: an absent and an empty list
// are equal, as are equivalent quantities and times.
func equal(a, b reflect.Value) bool {
	return comparerFor(a.Type())(a, b)
}

// comparer compares values of a type.
type comparer func(a, b reflect.Value) bool

var comparers sync.Map // of reflect.Type to comparer

func comparerFor(t reflect.Type) comparer {
	if c, ok := comparers.Load(t); ok {
		return c.(comparer)
	}
	c := comparison{}.of(t)
	comparers.Store(t, c)
	return c
}

// comparison has the comparers of all types within a type, which may be recursive.
type comparison map[reflect.Type]*comparer

func (c comparison) of(t reflect.Type) comparer {
	if known, ok := c[t]; ok {
		return func(a, b reflect.Value) bool { return (*known)(a, b) }
	}
	made := new(comparer)
	c[t] = made
	*made = c.make(t)
	return *made
}

func (c comparison) make(t reflect.Type) comparer {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return func(a, b reflect.Value) bool {
			return a.Field(0).Interface().(time.Time).Equal(b.Field(0).Interface().(time.Time))
		}
	case reflect.TypeFor[resource.Quantity]():
		return func(a, b reflect.Value) bool {
			x, y := a.Interface().(resource.Quantity), b.Interface().(resource.Quantity)
			return x.Cmp(y) == 0
		}
	case reflect.TypeFor[map[string]string]():
		return func(a, b reflect.Value) bool {
			return maps.Equal(a.Interface().(map[string]string), b.Interface().(map[string]string))
		}
	}
	switch t.Kind() {
	case reflect.String:
		return func(a, b reflect.Value) bool { return a.String() == b.String() }
	case reflect.Bool:
		return func(a, b reflect.Value) bool { return a.Bool() == b.Bool() }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(a, b reflect.Value) bool { return a.Int() == b.Int() }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(a, b reflect.Value) bool { return a.Uint() == b.Uint() }
	case reflect.Struct:
		return c.structs(t)
	case reflect.Pointer:
		elem := c.of(t.Elem())
		return func(a, b reflect.Value) bool {
			return a.UnsafePointer() == b.UnsafePointer() || !a.IsNil() && !b.IsNil() && elem(a.Elem(), b.Elem())
		}
	case reflect.Slice:
		return c.slices(t)
	case reflect.Map:
		return c.maps(t)
	}
	return semantic
}

// semantic compares types without a comparer of their own.
func semantic(a, b reflect.Value) bool {
	return equality.Semantic.DeepEqual(a.Interface(), b.Interface())
}

func (c comparison) structs(t reflect.Type) comparer {
	fields := make([]comparer, t.NumField())
	for i := range fields {
		if !t.Field(i).IsExported() {
			return semantic // has functions for some types
		}
		fields[i] = c.of(t.Field(i).Type)
	}
	return func(a, b reflect.Value) bool {
		for i, equal := range fields {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
}

func (c comparison) slices(t reflect.Type) comparer {
	if t.Elem().Kind() == reflect.Uint8 {
		return func(a, b reflect.Value) bool { return bytes.Equal(a.Bytes(), b.Bytes()) }
	}
	elem := c.of(t.Elem())
	return func(a, b reflect.Value) bool {
		n := a.Len()
		if n != b.Len() {
			return false
		}
		if n == 0 || a.UnsafePointer() == b.UnsafePointer() {
			return true
		}
		for i := range n {
			if !elem(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
}

func (c comparison) maps(t reflect.Type) comparer {
	elem := c.of(t.Elem())
	return func(a, b reflect.Value) bool {
		if a.Len() != b.Len() {
			return false
		}
		if a.Len() == 0 || a.UnsafePointer() == b.UnsafePointer() {
			return true
		}
		for i := a.MapRange(); i.Next(); {
			if other := b.MapIndex(i.Key()); !other.IsValid() || !elem(i.Value(), other) {
				return false
			}
		}
		return true
	}
}
