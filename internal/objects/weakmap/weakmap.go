// SPDX-License-Identifier: Apache-2.0

// Package weakmap keeps values for objects without keeping the objects in memory.
package weakmap

import (
	"reflect"
	"runtime"
	"sync"
	"weak"
)

// Map has a value for each object. The zero map is empty. It is safe for concurrent use.
type Map[K, V any] struct{ values sync.Map }

// Of returns the value for an object: the same for each call, at first the zero value. It is removed with the object,
// which it must not refer to.
func (m *Map[K, V]) Of(object *K) *V {
	id := weak.Make(object)
	if value, known := m.values.Load(id); known {
		return value.(*V)
	}
	value, known := m.values.LoadOrStore(id, new(V))
	if !known {
		runtime.AddCleanup(object, func(id weak.Pointer[K]) { m.values.Delete(id) }, id)
	}
	return value.(*V)
}

// Address returns the address of what a pointer in an interface points to, or nil if it cannot identify anything.
func Address(pointer any) *byte {
	value := reflect.ValueOf(pointer)
	if value.Kind() != reflect.Pointer || value.IsNil() || value.Type().Elem().Size() == 0 {
		return nil
	}
	return (*byte)(value.UnsafePointer())
}
