// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestFailuresAreSavedAndTriedFirst finds a failure, saves it, and finds it again without looking for it.
func TestFailuresAreSavedAndTriedFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	found := mustPlan(t, copierScenario(true)).check(t, DefaultOptions()).Failure
	if found == nil {
		t.Fatal("nothing is found")
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
		t.Errorf("it fails although it is fixed: %v", fixed)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# " + found.Violation.String() + "\n" + found.Replay + "\n"; string(content) != want {
		t.Errorf("the file has %q, want %q", content, want)
	}
}

// TestFailuresAreShort finds that what is shrunk has no fault too many, and a timeline that fits.
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
		p.tell(t, f)
		if f.Violation.Oracle != v.Oracle || f.Violation.About != v.About {
			t.Errorf("%s: slips to %s", v, f.Violation)
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
