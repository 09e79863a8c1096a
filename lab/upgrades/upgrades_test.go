// SPDX-License-Identifier: Apache-2.0

package upgrades

import (
	"strings"
	"testing"

	"trueup.dev/converge"
)

// TestUpgrades finds each bug with its oracle, and nothing in correct versions.
func TestUpgrades(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			report := check(t, &e, true)
			switch f := report.Failure; {
			case f == nil:
				t.Errorf("not found: %s\n%s", e.About, report.Certificate)
			case f.Violation.Oracle != e.Oracle:
				t.Errorf("found by %s, want %s:\n%s", f.Violation.Oracle, e.Oracle, f)
			case strings.HasPrefix(f.Replay, "rollback:") != e.Rollback:
				t.Errorf("found by %s:\n%s", f.Replay, f)
			default:
				t.Logf("found in %s:\n%s", report.Certificate.Elapsed, f)
			}
			report = check(t, &e, false)
			if report.Failure != nil {
				t.Errorf("false alarm: %s\n%sreplay %s", e.About, report.Failure, report.Failure.Replay)
			}
			t.Log(report.Certificate, report.Certificate.Elapsed)
		})
	}
}

// TestUpgrades_alone checks that each version converges alone under every single fault: Run does not find the bugs.
func TestUpgrades_alone(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			for _, buggy := range []bool{true, false} {
				old, current := e.Scenarios(buggy)
				for name, s := range map[string]converge.Scenario{"old": old, "new": current} {
					report, err := converge.Check(t, s, converge.Options{Seed: 1})
					if err != nil {
						t.Fatal(err)
					}
					if report.Failure != nil {
						t.Errorf("%s version, buggy %t: %s", name, buggy, report.Failure)
					}
				}
			}
		})
	}
}

func check(t *testing.T, e *Entry, buggy bool) *converge.UpgradeReport {
	t.Helper()
	old, current := e.Scenarios(buggy)
	report, err := converge.CheckUpgrade(t, old, current, converge.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestAll_isWellFormed checks the descriptions of the entries.
func TestAll_isWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		if seen[e.Name] || !strings.HasSuffix(e.About, ".") || e.Oracle == "" {
			t.Errorf("%s: not unique or not complete", e.Name)
		}
		seen[e.Name] = true
	}
}
