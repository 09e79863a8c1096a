// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"regexp"
	"strings"
	"testing"

	"trueup.dev/converge"
)

// timelineLine has the actor and the rest of a line of a timeline.
var timelineLine = regexp.MustCompile(`^ *\d+ +\S+ +(reconcile \d+|another client|process|user|\S+) +(.*)$`)

// claims are parts of hints, with what the timeline must show for each.
var claims = []struct {
	hint  string
	shown func(lines [][2]string) bool
}{
	{"swallow", func(lines [][2]string) bool {
		failed := map[string]bool{}
		for _, line := range lines {
			who, what := line[0], line[1]
			switch {
			case strings.HasPrefix(what, "ends"):
				if failed[who] && !strings.Contains(what, "error:") && !strings.Contains(what, " again") {
					return true
				}
			case strings.Contains(what, "◄ fault") || strings.Contains(what, "Operation cannot be fulfilled"):
				failed[who] = true
			}
		}
		return false
	}},
	{"created again", func(lines [][2]string) bool {
		times := 0
		for _, line := range lines {
			if strings.HasPrefix(line[0], "reconcile") &&
				(strings.HasPrefix(line[1], "create") || strings.HasPrefix(line[1], "call cloud create")) {
				times++
			}
		}
		return times > 1
	}},
	{"stale cache", contains("◄ stale")},
	{"was not visible", contains("◄ stale")},
	{"crash", contains("starts again")},
	{"is not recreated", contains("delete ")},
	{"which has no order", contains(" items")},
	{"its error was returned", contains("error:")},
	{"each reconcile fails", lastEnds("error:", true)},
	{"each reconcile changes", lastEnds("error:", false)},
	{"each reconcile creates", lastEnds("error:", false)},
	{"do not request another", lastEnds("again", true)},
	{"the garbage collector deletes", contains("delete ")},
}

func contains(part string) func([][2]string) bool {
	return func(lines [][2]string) bool {
		for _, line := range lines {
			if strings.Contains(line[1], part) {
				return true
			}
		}
		return false
	}
}

// lastEnds checks how the last reconcile has ended.
func lastEnds(part string, want bool) func([][2]string) bool {
	return func(lines [][2]string) bool {
		last := ""
		for _, line := range lines {
			if strings.HasPrefix(line[1], "ends") {
				last = line[1]
			}
		}
		return last != "" && strings.Contains(last, part) == want
	}
}

// checkHint checks that the timeline of a failure does not contradict its hint.
func checkHint(t *testing.T, f *converge.Failure) {
	t.Helper()
	var lines [][2]string
	for line := range strings.Lines(f.FullTimeline()) {
		if match := timelineLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); match != nil {
			lines = append(lines, [2]string{match[1], match[2]})
		}
	}
	for _, claim := range claims {
		if strings.Contains(f.Hint, claim.hint) && !claim.shown(lines) {
			t.Errorf("the timeline does not show %q of the hint:\n%s\n%s", claim.hint, f, f.FullTimeline())
		}
	}
}

// TestCheckHint checks that contradictions are found.
func TestCheckHint(t *testing.T) {
	returned := [][2]string{{"reconcile 1", "create X a   timeout  ◄ fault"}, {"reconcile 1", "ends  error: timeout"}}
	swallowed := [][2]string{returned[0], {"reconcile 1", "ends  ok"}}
	if claims[0].shown(returned) || !claims[0].shown(swallowed) {
		t.Error("a returned error is taken for a swallowed one")
	}
	if claims[1].shown(swallowed) || !claims[1].shown(append(returned, swallowed...)) {
		t.Error("one creation is taken for two")
	}
	if lastEnds("error:", true)(swallowed) || !lastEnds("error:", true)(returned) {
		t.Error("the end of the last reconcile is mistaken")
	}
}
