// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"testing"
	"time"

	"trueup.dev/converge"
)

// options are those of a default run, and for bugs of two faults as much as a minute would allow.
func options(e Entry, seed uint64) converge.Options {
	o := converge.DefaultOptions()
	o.Seed = seed
	if e.Faults > 1 {
		o.AllPairs, o.Recoveries, o.Budget = true, -1, time.Minute
	}
	return o
}

func TestCorpus(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			if e.Buggy != nil {
				report, err := converge.Check(t, e.Buggy(), options(e, 1))
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
				}
			}
			report, err := converge.Check(t, e.Correct(), options(e, 1))
			if err != nil {
				t.Fatal(err)
			}
			if report.Failure != nil {
				t.Errorf("false alarm: %s\n%sreplay %s", e.About, report.Failure, report.Failure.Replay)
			}
			t.Log(fmt.Sprint(report.Certificate), report.Certificate.Elapsed)
		})
	}
}
