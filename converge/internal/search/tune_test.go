// SPDX-License-Identifier: Apache-2.0

package search

import (
	"runtime"
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

// TestOneProcessor uses one processor during a search, and all of them afterwards. It must not run in parallel.
func TestOneProcessor(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	before := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(before)
	restore := Tune(t)
	if got := runtime.GOMAXPROCS(0); got != 1 {
		t.Errorf("during a search there are %d processors, want 1", got)
	}
	restore()
	if got := runtime.GOMAXPROCS(0); got != 2 {
		t.Errorf("after a search there are %d processors, want 2", got)
	}
	t.Setenv("GOMAXPROCS", "2")
	defer Tune(t)()
	if got := runtime.GOMAXPROCS(0); got != 2 {
		t.Errorf("with GOMAXPROCS of the user there are %d processors, want no change", got)
	}
}

func TestIsParallel(t *testing.T) {
	if isParallel(t) {
		t.Error("a test that is not parallel is taken for one")
	}
	t.Run("parallel", func(t *testing.T) {
		t.Parallel()
		if !isParallel(t) {
			t.Error("a parallel test is not recognized")
		}
		t.Run("subtest", func(t *testing.T) {
			if !isParallel(t) {
				t.Error("a subtest of a parallel test is not recognized")
			}
		})
	})
}
