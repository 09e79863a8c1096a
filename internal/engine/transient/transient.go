// SPDX-License-Identifier: Apache-2.0

// Package transient has a map for entries that come and go, such as one for each object while a controller starts. A
// map of Go keeps the memory of the most entries that it ever had.
package transient

import "maps"

// Map returns the memory of most of its entries when they are deleted. The zero value is an empty map. It is not safe
// for concurrent use.
type Map[K comparable, V any] struct {
	entries map[K]V
	// most is the largest number of entries since entries was made.
	most int
}

const (
	// small is the number of entries that are not worth the work.
	small = 256
	// spare is how many times the current number of entries the memory may be for.
	spare = 8
)

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return len(m.entries) }

// Get returns the value of a key, or the zero value.
func (m *Map[K, V]) Get(key K) V { return m.entries[key] }

// Put sets the value of a key.
func (m *Map[K, V]) Put(key K, value V) {
	if m.entries == nil {
		m.entries = map[K]V{}
	}
	m.entries[key] = value
	m.most = max(m.most, len(m.entries))
}

// Delete deletes an entry if it exists.
func (m *Map[K, V]) Delete(key K) {
	delete(m.entries, key)
	m.shrink()
}

// DeleteFunc deletes the entries for which del returns true.
func (m *Map[K, V]) DeleteFunc(del func(K, V) bool) {
	maps.DeleteFunc(m.entries, del)
	m.shrink()
}

// shrink copies the entries to a smaller map if the map has become much too large. The cost of the copy is a fraction
// of the cost of the deletions before it.
func (m *Map[K, V]) shrink() {
	if m.most < small || len(m.entries)*spare > m.most {
		return
	}
	smaller := make(map[K]V, len(m.entries))
	maps.Copy(smaller, m.entries)
	m.entries, m.most = smaller, len(smaller)
}
