// SPDX-License-Identifier: Apache-2.0

package elapsed

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "now", 59 * time.Second: "59 s ago", -61 * time.Second: "in 1 min", 47 * time.Hour: "47 h ago",
		-50 * time.Hour: "in 2 days", 59 * time.Minute: "59 min ago",
	} {
		if got := Ago(now.Add(-d), now); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.00 ms", 120 * time.Microsecond: "0.12 ms", 12 * time.Millisecond: "12 ms", 1250 * time.Millisecond: "1.2 s",
		90*time.Second + 4*time.Millisecond: "1m30s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
