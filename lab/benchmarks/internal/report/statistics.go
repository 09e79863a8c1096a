// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
)

// Median returns the middle value, or the mean of the two middle values. It is 0 for no values.
func Median(values ...float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}

// medians returns a sample for each size and contender, in that order, with the medians over all rounds. If only some
// rounds have a value, it is 0 in the others: a missing count is 0.
func medians(samples []Sample) []Sample {
	type key struct {
		size      int
		contender string
	}
	rounds := map[key][]Sample{}
	for _, sample := range samples {
		k := key{sample.Size, sample.Contender}
		rounds[k] = append(rounds[k], sample)
	}
	result := []Sample{}
	for k, of := range rounds {
		median := Sample{Contender: k.contender, Size: k.size, Values: map[string]float64{}}
		for _, sample := range of {
			for name := range sample.Values {
				values := []float64{}
				for _, other := range of {
					values = append(values, other.Values[name])
				}
				median.Values[name] = Median(values...)
			}
		}
		result = append(result, median)
	}
	slices.SortFunc(result, func(a, b Sample) int {
		return cmp.Or(
			cmp.Compare(a.Size, b.Size),
			cmp.Compare(slices.Index(Contenders(), a.Contender), slices.Index(Contenders(), b.Contender)),
		)
	})
	return result
}

// ratio returns value / by, or false if one is missing or by is 0.
func ratio(value float64, ok bool, by float64, byOK bool) (float64, bool) {
	if !ok || !byOK || by == 0 {
		return 0, false
	}
	return value / by, true
}

// Ratio returns the value of a contender relative to the baseline.
func (w *Workload) Ratio(metric, contender string, size int) (float64, bool) {
	value, ok := w.Median(metric, contender, size)
	base, baseOK := w.Median(metric, HandWritten, size)
	return ratio(value, ok, base, baseOK)
}

// Growth returns the value of a contender at a size relative to the smallest size.
func (w *Workload) Growth(metric, contender string, size int) (float64, bool) {
	value, ok := w.Median(metric, contender, size)
	base, baseOK := w.Median(metric, contender, w.Sizes()[0])
	return ratio(value, ok, base, baseOK)
}
