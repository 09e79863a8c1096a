// SPDX-License-Identifier: Apache-2.0

// Package heap measures the memory of tests.
package heap

import "runtime"

// InUse returns the bytes of the heap that are in use. It collects garbage before.
func InUse() int64 {
	runtime.GC()
	runtime.GC() // a second collection frees what finalizers and pools held
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
