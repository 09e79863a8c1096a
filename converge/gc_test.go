// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"runtime/debug"
	"testing"
)

// TestCollectLess restores the setting after the last of several searches. It must not run in parallel.
func TestCollectLess(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	current := func() int {
		percent := debug.SetGCPercent(100)
		debug.SetGCPercent(percent)
		return percent
	}
	one, two := collectLess(), collectLess()
	one()
	if got := current(); got != gcPercent {
		t.Errorf("during a search the setting is %d, want %d", got, gcPercent)
	}
	two()
	if got := current(); got != 100 {
		t.Errorf("after all searches the setting is %d, want 100", got)
	}
	t.Setenv("GOGC", "50")
	defer collectLess()()
	if got := current(); got != 100 {
		t.Errorf("with GOGC of the user the setting is %d, want no change", got)
	}
}
