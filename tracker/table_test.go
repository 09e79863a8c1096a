// SPDX-License-Identifier: Apache-2.0

package tracker

import "testing"

// A map that had many entries is replaced when few are left, not earlier, and no entry is lost.
func TestTableShrinks(t *testing.T) {
	const most = 1000
	var numbers table[int, int]
	for i := range most {
		numbers.put(i, -i)
	}
	copies := 0
	for i := range most - 1 {
		peak := numbers.peak
		numbers.remove(i)
		if numbers.peak != peak {
			copies++
			if left := len(numbers.entries); left > peak/4 {
				t.Errorf("copied with %d of %d entries left", left, peak)
			}
		}
	}
	if copies != 2 {
		t.Errorf("the map was replaced %d times, want 2: at 250 and at 62 entries", copies)
	}
	if len(numbers.entries) != 1 || numbers.entries[most-1] != 1-most {
		t.Errorf("got %v left, want %d: %d", numbers.entries, most-1, 1-most)
	}
}
