// SPDX-License-Identifier: Apache-2.0

package search

import (
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
)

// gcPercent is the value of GOGC during a search. A run keeps nothing, and the heap is small: compared with the default
// of 100, a search tries a tenth more schedules in the same processor time, and its heap grows to some 100 MB.
const gcPercent = 400

// searches counts the searches of all tests that run in parallel, and before is the value of GOGC before the first.
var searches struct {
	sync.Mutex

	count, before int
}

// Tune adapts the Go runtime to a search, until the returned function is called: the garbage collector runs less often,
// and goroutines share one processor, unless other tests run in parallel. A run passes control from one goroutine to
// another all the time; with more processors, waking up idle ones takes a quarter of the processor time. What the user
// has set with GOGC and GOMAXPROCS stays.
func Tune(t *testing.T) (restore func()) {
	collect, processors := collectLess(), 0
	if os.Getenv("GOMAXPROCS") == "" && !isParallel(t) {
		processors = runtime.GOMAXPROCS(1)
	}
	return func() {
		collect()
		if processors > 0 {
			runtime.GOMAXPROCS(processors)
		}
	}
}

// isParallel reports whether other tests may run at the same time. Package testing does not export that; if a later
// version keeps it elsewhere, the result is true.
func isParallel(t *testing.T) bool {
	for v := reflect.ValueOf(t); !v.IsNil(); v = v.Elem().FieldByName("parent") {
		field := v.Elem().FieldByName("isParallel")
		if !field.IsValid() || field.Kind() != reflect.Bool || field.Bool() {
			return true
		}
		if parent := v.Elem().FieldByName("parent"); !parent.IsValid() || parent.Kind() != reflect.Pointer {
			return true
		}
	}
	return false
}

// collectLess lets the garbage collector run less often until the returned function is called.
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
