// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"testing"
	"time"

	"trueup.dev/converge"
)

// TestCorpus finds each bug with at most the expected number of faults, and nothing in correct reconcilers. The report
// tries more.
func TestCorpus(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			if e.Buggy != nil {
				findBug(t, e)
			}
			report, err := converge.Check(t, e.Correct(), converge.DefaultOptions())
			if err != nil {
				t.Fatal(err)
			}
			if report.Failure != nil {
				t.Errorf("false alarm: %s\n%sreplay %s", e.About, report.Failure, report.Failure.Replay)
			}
			t.Log(report.Certificate, report.Certificate.Elapsed)
		})
	}
}

func findBug(t *testing.T, e Entry) {
	t.Helper()
	o := converge.DefaultOptions()
	if e.Faults > 1 {
		o.Pairs, o.Recoveries, o.Budget = -1, -1, time.Minute
	}
	report, err := converge.Check(t, e.Buggy(), o)
	switch {
	case err != nil:
		t.Fatal(err)
	case report.Failure == nil:
		t.Errorf("not found: %s\n%s", e.About, report.Certificate)
	default:
		t.Logf("found after %d runs:\n%s", report.Certificate.Schedules, report.Failure)
		if n := len(report.Failure.Faults); n > e.Faults {
			t.Errorf("found with %d faults, want %d", n, e.Faults)
		}
		checkHint(t, report.Failure)
	}
}
