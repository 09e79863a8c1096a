// SPDX-License-Identifier: Apache-2.0

package states

import (
	"strings"
	"testing"

	"trueup.dev/converge"
)

// TestStates finds each bug with its oracle, and nothing in correct reconcilers.
func TestStates(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			report := check(t, e.Scenario(true))
			switch f := report.Failure; {
			case f == nil && e.Category == "half":
				if len(report.Certificate.Advice) == 0 {
					t.Errorf("no advice: %s\n%s", e.About, report.Certificate)
				}
			case f == nil:
				t.Errorf("not found: %s\n%s", e.About, report.Certificate)
			case f.Violation.Oracle != e.Oracle:
				t.Errorf("found by %s, want %s:\n%s", f.Violation.Oracle, e.Oracle, f)
			default:
				t.Logf("found in %s:\n%s", report.Certificate.Elapsed, f)
			}
			if report = check(t, e.Scenario(false)); report.Failure != nil {
				t.Errorf("false alarm: %s\n%sreplay %s", e.About, report.Failure, report.Failure.Replay)
			}
			if e.Category == "half" && len(report.Certificate.Advice) > 0 {
				t.Errorf("false alarm: %s\n%s", e.About, report.Certificate)
			}
			t.Log(report.Certificate, report.Certificate.Elapsed)
		})
	}
}

func check(t *testing.T, s converge.Scenario) *converge.StatesReport {
	t.Helper()
	report, err := converge.CheckStates(t, s, converge.DefaultStatesOptions())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestAll_isWellFormed checks the descriptions of the entries.
func TestAll_isWellFormed(t *testing.T) {
	names := map[string]bool{}
	categories := map[string]int{"undesired": 0, "error": 0, "outage": 0, "ignored": 0, "half": 0}
	for _, e := range All() {
		if _, ok := categories[e.Category]; !ok {
			t.Errorf("%s: unknown category %q", e.Name, e.Category)
		}
		if names[e.Name] || !strings.HasSuffix(e.About, ".") || (e.Oracle == "") != (e.Category == "half") {
			t.Errorf("%s: not unique or not complete", e.Name)
		}
		names[e.Name] = true
		categories[e.Category]++
	}
	for category, n := range categories {
		if n == 0 {
			t.Errorf("no bug of category %s", category)
		}
	}
}
