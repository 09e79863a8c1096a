// SPDX-License-Identifier: Apache-2.0

package tracker

// table is a map that gives memory back when most of its entries are gone; the
// maps of Go keep the room for as many as they ever had.
type table[K comparable, V any] struct {
	entries map[K]V
	// peak is the most entries since the map was made.
	peak int
}

// roomy is the number of entries for which memory is not worth the copying.
const roomy = 64

func (t *table[K, V]) put(key K, value V) {
	if t.entries == nil {
		t.entries = map[K]V{}
	}
	t.entries[key] = value
	t.peak = max(t.peak, len(t.entries))
}

func (t *table[K, V]) remove(key K) {
	delete(t.entries, key)
	if t.peak <= roomy || len(t.entries) > t.peak/4 {
		return
	}
	// Every copied entry stands for three removed ones, so removing takes
	// constant time on average.
	smaller := make(map[K]V, len(t.entries))
	for k, v := range t.entries {
		smaller[k] = v
	}
	t.entries, t.peak = smaller, len(smaller)
}
