// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"
	"time"
)

func TestHistory(t *testing.T) {
	tests := map[string]struct {
		interval  time.Duration
		revisions int64 // in each interval
		bytes     int64
		points    int
		want      int64
	}{
		"no changes":             {time.Second, 0, 0, 1000, 0},
		"few changes, by age":    {time.Second, 10, 1000, 1000, 10 * (1000 - 1 - 300)},
		"within all limits":      {time.Second, 10, 1000, 100, 0},
		"many changes":           {time.Second, 2000, 1000, 100, 2000 * (100 - 1 - 25)},
		"large objects":          {time.Second, 10, 16 << 20, 100, 10 * (100 - 1 - 4)},
		"one point over a limit": {time.Second, 10, 100 << 20, 100, 10 * 99},
		"after a pause":          {10 * time.Minute, 10, 1000, 3, 20},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var h history
			now := time.Now()
			for i := range int64(test.points) {
				h.observe(now.Add(time.Duration(i)*test.interval), i*test.revisions, i*test.bytes)
			}
			if got := h.oldest(); got != test.want {
				t.Errorf("oldest revision = %d, want %d", got, test.want)
			}
		})
	}
}

// A compaction reduces the size of the database. Later growth still counts.
func TestHistoryCountsGrowthAfterCompaction(t *testing.T) {
	var h history
	now := time.Now()
	h.observe(now, 1, 200<<20)
	h.compacted(10 << 20)
	h.observe(now.Add(time.Second), 2, 80<<20)
	if got := h.oldest(); got != 2 {
		t.Errorf("oldest revision = %d after 70 MiB, want 2", got)
	}
}
