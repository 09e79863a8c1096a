// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"runtime"
	"time"

	"trueup.dev/benchmarks/internal/report"
)

// usage is what something took, of all goroutines together, each per reconcile.
type usage struct {
	microseconds, bytes, allocs float64
	// cpu is in microseconds, and false where it is not known.
	cpu      float64
	cpuKnown bool
}

// measure does something that reconciles so many times.
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

// least is the least of each: whatever else happens on a machine only ever adds.
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

// heap returns how much memory is in use, without what is only waiting to be collected.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // a second time for what finalizers and pools held
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
