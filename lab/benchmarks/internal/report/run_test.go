// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/lab/benchmarks/internal/report"
)

func TestRun_JSON(t *testing.T) {
	want := measured()
	buffer := bytes.Buffer{}
	if err := want.Write(&buffer); err != nil {
		t.Fatal(err)
	}
	got, err := report.Read(&buffer)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after a round trip (-want +got):\n%s", diff)
	}
	// A run that was read can be extended.
	got.Workloads[0].Add(
		report.Sample{Contender: report.Trueup, Size: 500, Round: 3, Values: map[string]float64{noop.Name: 13.5}},
		[]report.Metric{noop},
	)
	if median, ok := got.Workloads[0].Median(noop.Name, report.Trueup, 500); median != 13.5 || !ok {
		t.Errorf("median of 12, 14 and 13.5 is %v, %t", median, ok)
	}
}

func TestRead_Errors(t *testing.T) {
	for name, input := range map[string]string{
		"no JSON":       "hello",
		"other JSON":    `{"kind": "Widget"}`,
		"no workloads":  `{"rounds": 3}`,
		"cut off":       `{"rounds": 3, "workloads": [`,
		"nothing":       "",
		"other numbers": `{"rounds": "three"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if run, err := report.Read(strings.NewReader(input)); err == nil ||
				!strings.HasPrefix(err.Error(), "invalid JSON of a run: ") {
				t.Errorf("run %v, error %v", run, err)
			}
		})
	}
}

func TestWorkload_MetricsKeepTheirOrder(t *testing.T) {
	a, b, c, d := report.Metric{Name: "a"}, report.Metric{Name: "b"}, report.Metric{Name: "c"}, report.Metric{Name: "d"}
	w := report.Workload{}
	w.Add(report.Sample{}, []report.Metric{a, d})
	w.Add(report.Sample{}, []report.Metric{a, c, d})
	w.Add(report.Sample{}, []report.Metric{b, c})
	w.Add(report.Sample{}, []report.Metric{a})
	// b is after a in every sample
	if diff := cmp.Diff([]report.Metric{b, a, c, d}, w.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestWorkload_Contenders(t *testing.T) {
	w := measured().Workloads[0]
	if diff := cmp.Diff([]string{report.HandWritten, report.Trueup}, w.Contenders()); diff != "" {
		t.Errorf("contenders (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{500, 20000}, w.Sizes()); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}
