// SPDX-License-Identifier: Apache-2.0

package tracker

// table is a map that releases memory when most of its entries are removed. Go maps keep the memory for the most
// entries they ever had.
type table[K comparable, V any] struct {
	entries map[K]V
	// peak is the largest number of entries since the map was made.
	peak int
}

// roomy is the number of entries below which a map is not shrunk.
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
	// Each copied entry corresponds to three removed ones, so removing takes constant time on average.
	smaller := make(map[K]V, len(t.entries))
	for k, v := range t.entries {
		smaller[k] = v
	}
	t.entries, t.peak = smaller, len(smaller)
}
