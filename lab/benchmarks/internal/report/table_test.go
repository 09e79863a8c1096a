// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/lab/benchmarks/internal/report"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), accept it with -update:\n%s", name, diff)
	}
}

func TestRun_Table(t *testing.T) {
	text := strings.Builder{}
	if err := measured().Table(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.golden", text.String())
}

// With one contender there is nothing to compare with, and with one size no growth.
func TestRun_TableOfOneContender(t *testing.T) {
	run := measured()
	run.Rounds, run.Environment.Logging = 1, false
	whole := run.Workloads[0]
	part := &report.Workload{Name: whole.Name, About: whole.About, Noun: whole.Noun}
	for _, sample := range whole.Samples {
		if sample.Contender == report.Trueup && sample.Size == 20000 && sample.Round == 1 {
			part.Add(sample, whole.Metrics)
		}
	}
	run.Workloads[0] = part
	text := strings.Builder{}
	if err := run.Table(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "table-one.golden", text.String())
}
