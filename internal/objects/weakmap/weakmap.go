// SPDX-License-Identifier: Apache-2.0

// Package weakmap keeps values for objects without keeping the objects in memory.
package weakmap

import (
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
