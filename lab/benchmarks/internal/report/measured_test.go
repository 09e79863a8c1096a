// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"time"

	"trueup.dev/lab/benchmarks/internal/report"
)

var (
	wall   = report.Metric{Name: "wall to converge", Unit: "s", Drawn: true}
	writes = report.Metric{Name: "API writes per parent", Drawn: true}
	noop   = report.Metric{Name: "no-op reconcile", Unit: "µs"}
	stray  = report.Metric{Name: "stray writes", Drawn: true}
	create = report.Metric{Name: "create configmaps", Tally: true}
	events = report.Metric{Name: "create events", Tally: true}
)

// measured is a run of two rounds with special cases: values that are 0, metrics that only one contender has, and large
// numbers.
func measured() *report.Run {
	workload := &report.Workload{Name: "converge", About: "parents with a child each", Noun: "parents"}
	add := func(round, size int, contender string, metrics []report.Metric, values ...float64) {
		sample := report.Sample{Contender: contender, Size: size, Round: round, Values: map[string]float64{}}
		for i, metric := range metrics {
			sample.Values[metric.Name] = values[i]
		}
		workload.Add(sample, metrics)
	}
	byHand := []report.Metric{wall, writes, noop, stray, create}
	ours := []report.Metric{wall, writes, noop, stray, create, events}
	add(1, 500, report.HandWritten, byHand, 1.0, 2.5, 10, 0, 502)
	add(1, 500, report.Trueup, ours, 0.8, 2, 12, 0, 500, 1000)
	add(1, 20000, report.HandWritten, byHand, 44.5, 2.7, 12.25, 0, 20044)
	add(1, 20000, report.Trueup, ours, 33.5, 2, 12.5, 3, 20000, 12345)
	add(2, 500, report.Trueup, ours, 1.0, 2, 14, 0, 500, 1000)
	add(2, 500, report.HandWritten, byHand, 1.4, 2.5, 10, 0, 504)
	add(2, 20000, report.Trueup, ours, 32.5, 2, 12.5, 1, 20000, 12345)
	add(2, 20000, report.HandWritten, byHand, 45.5, 2.7, 12.75, 0, 20046)
	return &report.Run{
		Environment: report.Environment{
			Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Go: "go1.26.0", Platform: "linux/amd64", CPUs: 2,
			Kubernetes: "v1.37.1", Workers: 10, Logging: true,
		},
		Rounds:    2,
		Workloads: []*report.Workload{workload},
	}
}
