// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// While all memory of the Go runtime is below this limit, garbage is collected as usual. Otherwise it is collected
	// more often, at the cost of CPU time.
	memoryFloor = 450 << 20

	memoryInterval  = time.Second
	memoryOverhead  = 64 << 20 // stacks and the like
	liveBytesMetric = "/gc/heap/live:bytes"
)

// limitMemory lets the garbage collector work more while much memory is in use, until ctx ends. By default, garbage may
// occupy as much as what is live, which is the history in kube-apiserver's watch caches after many writes. It does
// nothing if the user has configured the garbage collector by environment variables.
func limitMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	for {
		debug.SetMemoryLimit(memoryLimit(liveBytes()))
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// memoryLimit leaves space for garbage, so that the collector never works all the time.
func memoryLimit(live uint64) int64 {
	return max(memoryFloor, int64(live)*14/10+memoryOverhead)
}

func liveBytes() uint64 {
	sample := []metrics.Sample{{Name: liveBytesMetric}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
