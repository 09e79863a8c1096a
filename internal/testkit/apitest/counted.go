// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Counted returns the sum of a counter or gauge of this process over all series with the labels.
func Counted(t testing.TB, name string, labels map[string]string) (sum float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	metrics:
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if want, ok := labels[label.GetName()]; ok && want != label.GetValue() {
					continue metrics
				}
			}
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return sum
}

// Counting returns a function with what is added to a counter from now on. With -count, a process runs a test several
// times.
func Counting(t testing.TB, name string, labels map[string]string) func() float64 {
	t.Helper()
	before := Counted(t, name, labels)
	return func() float64 {
		t.Helper()
		return Counted(t, name, labels) - before
	}
}
