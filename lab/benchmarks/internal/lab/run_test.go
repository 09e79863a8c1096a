// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/lab/benchmarks/internal/report"
)

func TestOptions_Turns(t *testing.T) {
	o := Defaults()
	for round, want := range map[int][]string{
		1: {report.HandWritten, report.Trueup},
		2: {report.Trueup, report.HandWritten},
		3: {report.HandWritten, report.Trueup},
	} {
		if diff := cmp.Diff(want, o.turns(round)); diff != "" {
			t.Errorf("turns of round %d (-want +got):\n%s", round, diff)
		}
	}
	if diff := cmp.Diff(report.Contenders(), o.Contenders); diff != "" {
		t.Errorf("contenders after that (-want +got):\n%s", diff)
	}
}

func TestTrial_Report(t *testing.T) {
	count, tally, other := report.Metric{Name: "count"}, report.Metric{
		Name: "tally", Tally: true,
	}, report.Metric{Name: "other"}
	trial := Trial{sample: report.Sample{Values: map[string]float64{}}}
	trial.Report(count, 1)
	trial.Report(tally, 2)
	trial.Report(other, 3)
	trial.Report(count, 4)
	if diff := cmp.Diff(map[string]float64{"count": 4, "tally": 2, "other": 3}, trial.sample.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]report.Metric{count, other, tally}, trial.tallied()); diff != "" {
		t.Errorf("metrics, tallies last (-want +got):\n%s", diff)
	}
}

func TestWrites(t *testing.T) {
	for noun, want := range map[string]string{"parents": "API writes per parent", "children": "API writes per child"} {
		if got := Writes(noun).Name; got != want {
			t.Errorf("metric %q, want %q", got, want)
		}
	}
}
