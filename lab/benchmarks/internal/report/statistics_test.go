// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"math"
	"testing"

	"trueup.dev/lab/benchmarks/internal/report"
)

func TestMedian(t *testing.T) {
	for name, test := range map[string]struct {
		values []float64
		want   float64
	}{
		"none":              {nil, 0},
		"one":               {[]float64{7}, 7},
		"odd, out of order": {[]float64{9, 1, 5}, 5},
		"even":              {[]float64{4, 1, 2, 100}, 3},
		"an outlier":        {[]float64{10, 11, 1e9}, 11},
	} {
		t.Run(name, func(t *testing.T) {
			values := append([]float64(nil), test.values...)
			if got := report.Median(values...); got != test.want {
				t.Errorf("median %v, want %v", got, test.want)
			}
			for i := range values {
				if values[i] != test.values[i] {
					t.Fatalf("the values were changed: %v", values)
				}
			}
		})
	}
}

func TestWorkload_Comparisons(t *testing.T) {
	w := measured().Workloads[0]
	for name, test := range map[string]struct {
		compare func(metric, contender string, size int) (float64, bool)
		metric  report.Metric
		who     string
		size    int
		want    float64
		ok      bool
	}{
		"median of two rounds":        {w.Median, wall, report.HandWritten, 500, 1.2, true},
		"median of nothing":           {w.Median, events, report.HandWritten, 500, 0, false},
		"median at another size":      {w.Median, wall, report.HandWritten, 501, 0, false},
		"ratio":                       {w.Ratio, wall, report.Trueup, 500, 0.75, true},
		"ratio to itself":             {w.Ratio, wall, report.HandWritten, 500, 1, true},
		"ratio to zero":               {w.Ratio, stray, report.Trueup, 20000, 0, false},
		"ratio to nothing":            {w.Ratio, events, report.Trueup, 500, 0, false},
		"growth":                      {w.Growth, wall, report.HandWritten, 20000, 37.5, true},
		"growth at the smallest size": {w.Growth, wall, report.HandWritten, 500, 1, true},
		"growth from zero":            {w.Growth, stray, report.Trueup, 20000, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := test.compare(test.metric.Name, test.who, test.size)
			if ok != test.ok || math.Abs(got-test.want) > 1e-9 {
				t.Errorf("got %v, %t, want %v, %t", got, ok, test.want, test.ok)
			}
		})
	}
}

func TestWorkload_MedianOfRoundsWithoutValue(t *testing.T) {
	w := report.Workload{}
	for round, values := range []map[string]float64{{}, {create.Name: 3}, {}} {
		w.Add(report.Sample{Contender: report.Trueup, Size: 1, Round: round + 1, Values: values}, []report.Metric{create})
	}
	if got, ok := w.Median(create.Name, report.Trueup, 1); got != 0 || !ok {
		t.Errorf("median %v, %t: two of three rounds have no value", got, ok)
	}
}
