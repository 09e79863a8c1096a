// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"os"
	"runtime/debug"
	"sync"
)

// gcPercent is the value of GOGC during a search. A run keeps nothing, and the heap is small: compared with the default
// of 100, a search tries a tenth more schedules in the same processor time, and its heap grows to some 100 MB.
const gcPercent = 400

// searches counts the searches of all tests that run in parallel, and before is the value of GOGC before the first.
var searches struct {
	sync.Mutex

	count, before int
}

// collectLess lets the garbage collector run less often until the returned function is called. It does nothing if the
// user has set GOGC.
func collectLess() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	searches.Lock()
	defer searches.Unlock()
	if searches.count++; searches.count == 1 {
		searches.before = debug.SetGCPercent(gcPercent)
	}
	return func() {
		searches.Lock()
		defer searches.Unlock()
		if searches.count--; searches.count == 0 {
			debug.SetGCPercent(searches.before)
		}
	}
}
