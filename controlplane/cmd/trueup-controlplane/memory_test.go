// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestMemoryLimit(t *testing.T) {
	tests := map[string]struct {
		live uint64
		want int64
	}{
		"nothing":    {0, 450 << 20},
		"idle":       {100 << 20, 450 << 20},
		"busy":       {300 << 20, 484 << 20},
		"many types": {1000 << 20, 1464 << 20},
	}
	for name, test := range tests {
		if got := memoryLimit(test.live); got != test.want {
			t.Errorf("%s: memoryLimit(%d) = %d, want %d", name, test.live, got, test.want)
		}
	}
	if live := liveBytes(); live == 0 {
		t.Error("live bytes = 0, want the metric of the runtime")
	}
}
