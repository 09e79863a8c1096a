// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"trueup.dev/lab/benchmarks/internal/report"
)

// usage is the consumption of all goroutines, per reconcile.
type usage struct {
	microseconds, bytes, allocs float64
	// cpu is in microseconds. It is valid only if cpuKnown is set.
	cpu      float64
	cpuKnown bool
}

// measure calls a function that does that many reconciles.
func measure(reconciles int, do func() error) (usage, error) {
	runtime.GC()
	before, after := runtime.MemStats{}, runtime.MemStats{}
	runtime.ReadMemStats(&before)
	cpuBefore, _ := cpuTime()
	begin := time.Now()
	err := do()
	took := time.Since(begin)
	cpuAfter, known := cpuTime()
	runtime.ReadMemStats(&after)
	n := float64(reconciles)
	return usage{
		microseconds: float64(took.Nanoseconds()) / 1000 / n,
		bytes:        float64(after.TotalAlloc-before.TotalAlloc) / n,
		allocs:       float64(after.Mallocs-before.Mallocs) / n,
		cpu:          float64((cpuAfter - cpuBefore).Nanoseconds()) / 1000 / n,
		cpuKnown:     known,
	}, err
}

// usageMetrics are the metrics of a usage.
type usageMetrics struct{ time, cpu, bytes, allocs report.Metric }

// least returns the minimum of each value: other load on a machine only adds to them.
func least(a, b usage) usage {
	return usage{
		microseconds: min(a.microseconds, b.microseconds), bytes: min(a.bytes, b.bytes), allocs: min(a.allocs, b.allocs),
		cpu: min(a.cpu, b.cpu), cpuKnown: a.cpuKnown && b.cpuKnown,
	}
}

func (t *Trial) reportUsage(metrics usageMetrics, of usage) {
	t.Report(metrics.time, of.microseconds)
	if of.cpuKnown {
		t.Report(metrics.cpu, of.cpu)
	}
	t.Report(metrics.bytes, of.bytes)
	t.Report(metrics.allocs, of.allocs)
}

// heap returns the used memory after garbage collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // a second time for objects of finalizers and pools
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// resident returns the resident memory of the process after it has returned what it can to the system, or 0 where that
// is unknown.
func resident() uint64 {
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(status), &size, &pages); err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// restedHeap returns the used memory after the caches of the measurement before were collected, which takes until its
// last goroutine has ended. Otherwise they would be collected during this measurement, and make its heap smaller.
func (t *Trial) restedHeap(ctx context.Context) uint64 {
	const kept = 4 << 20 // schemes, mappings and templates that a program keeps
	for begin := time.Now(); ; time.Sleep(time.Second) {
		used := heap()
		if used <= t.heapAtRest+kept || ctx.Err() != nil {
			return used
		}
		if time.Since(begin) > time.Minute {
			t.Note("%.0f MB of earlier measurements were in use at the start", float64(used-t.heapAtRest)/1e6)
			return used
		}
	}
}
