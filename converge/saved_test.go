// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"os"
	"slices"
	"strings"
	"testing"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/search"
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
	p, reference := referred(t, copierScenario(true))
	tried, shrunk := 0, 0
	var faults []int
	for n := range uint64(3000) {
		s := search.RandomSchedule(reference.Points, 3, n)
		o := p.execute(t, s, p.usual(), nil)
		v, violated := o.First()
		if !violated || len(s) < 3 {
			continue
		}
		tried++
		f := p.shrunk(t, p.newSearch(t, Options{}).Failed(s, &o))
		if f.Violation.Oracle != v.Oracle || f.Violation.About != v.About {
			t.Errorf("%s: became %s", v, f.Violation)
		}
		faults = append(faults, len(f.Faults))
		if lines := strings.Count(f.Timeline(), "\n") - 1; lines > explain.MaxLines {
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

// TestFailuresOfStatesAreSaved saves a sequence of changes, without and with a fault, and runs it again. Its page shows
// the changes.
func TestFailuresOfStatesAreSaved(t *testing.T) {
	t.Chdir(t.TempDir())
	found := checkStates(t, titleScenario(titler{stale: true})).Failure
	if found == nil {
		t.Fatal("no failure")
	}
	if line := saveLine(t, found.failure); !strings.HasPrefix(line, "saved in ") {
		t.Fatal(line)
	}
	saved := savedRuns(t, savedWalk)
	if len(saved) != 1 || saved[0].replay != found.Replay || len(savedRuns(t, savedSchedule)) > 0 {
		t.Fatalf("got %v, want %s", saved, found.Replay)
	}
	again, err := mustStates(t, titleScenario(titler{stale: true})).rerun(saved[0].replay)
	if err != nil || again.String() != found.String() {
		t.Errorf("got %v, %v, want %s", again, err, found)
	}
	fixed, err := mustStates(t, titleScenario(titler{})).rerun(saved[0].replay)
	if err != nil || fixed.failed() {
		t.Errorf("the fixed reconciler fails: %v, %v", fixed, err)
	}
	page, err := found.failure.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<h2>The changes</h2>", "<li>spec.title = ", "-converge.replay=&#39;w1:1:"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not have %s", want)
		}
	}
}
