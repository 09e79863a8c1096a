// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestFailuresAreSavedAndTriedFirst finds a failure, saves it, and finds it again without a search.
func TestFailuresAreSavedAndTriedFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	found := mustPlan(t, copierScenario(true)).check(t, DefaultOptions()).Failure
	if found == nil {
		t.Fatal("no failure")
	}
	file, err := save(t, found)
	if err != nil {
		t.Fatal(err)
	}
	again := mustPlan(t, copierScenario(true)).replaySaved(t)
	if again == nil || again.Replay != found.Replay || again.Violation.Message != found.Violation.Message {
		t.Errorf("got %v, want %v", again, found)
	}
	if fixed := mustPlan(t, copierScenario(false)).replaySaved(t); fixed != nil {
		t.Errorf("the fixed reconciler fails: %v", fixed)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# " + found.Violation.String() + "\n" + found.Replay + "\n"; string(content) != want {
		t.Errorf("the file has %q, want %q", content, want)
	}
}

// TestFailuresAreShort checks that a shrunk failure needs each of its faults, and that its timeline is short.
func TestFailuresAreShort(t *testing.T) {
	p := mustPlan(t, copierScenario(true))
	reference, ok := p.refer(t)
	if !ok {
		t.Fatal(reference.violations)
	}
	tried, shrunk := 0, 0
	var faults []int
	for n := range uint64(3000) {
		s := randomSchedule(reference.points, 3, n)
		o := p.execute(t, s, p.usual(), nil)
		v, violated := o.violation()
		if !violated || len(s) < 3 {
			continue
		}
		tried++
		f := &Failure{Violation: v, schedule: s}
		p.shrink(t, f)
		p.record(t, f)
		if f.Violation.Oracle != v.Oracle || f.Violation.About != v.About {
			t.Errorf("%s: became %s", v, f.Violation)
		}
		faults = append(faults, len(f.Faults))
		if lines := strings.Count(f.Timeline(), "\n") - 1; lines > maxLines {
			t.Errorf("%d lines:\n%s", lines, f)
		}
		if shrunk++; shrunk == 5 {
			break
		}
	}
	if slices.Sort(faults); len(faults) != 5 || faults[2] > 2 {
		t.Errorf("%d faults are left", faults)
	}
	if tried < 5 {
		t.Errorf("only %d failures were shrunk", tried)
	}
}
