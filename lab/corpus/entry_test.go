// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestAll_isWellFormed checks the descriptions of the entries.
func TestAll_isWellFormed(t *testing.T) {
	names := map[string]bool{}
	classes := map[string]int{}
	twoFaults := 0
	link := regexp.MustCompile(`https://\S+$`)
	for _, e := range All() {
		classes[e.Class]++
		if e.Faults == 2 {
			twoFaults++
		}
		checks := []struct {
			wrong string
			is    bool
		}{
			{"its name is not unique", names[e.Name]},
			{"it has no sentence about it", !strings.HasSuffix(e.About, ".") || strings.Contains(e.About, "\n")},
			{"its source does not end with a link", !link.MatchString(e.Source)},
			{"it takes that many faults", e.Faults < 0 || e.Faults > 2},
			{"it has no correct reconciler", e.Correct == nil},
			{"it has a class and no bug, or a bug and no class", (e.Class == "") != (e.Buggy == nil)},
			{
				"a bug's name begins with its class",
				e.Class != "" && !strings.HasPrefix(e.Name, fmt.Sprintf("c%02s-", strings.TrimPrefix(e.Class, "C"))),
			},
		}
		for _, check := range checks {
			if check.is {
				t.Errorf("%s: %s", e.Name, check.wrong)
			}
		}
		names[e.Name] = true
	}
	for i := 1; i <= 16; i++ {
		if class := fmt.Sprintf("C%d", i); classes[class] < 3 {
			t.Errorf("class %s has %d bugs, want at least 3", class, classes[class])
		}
	}
	if classes[""] < 15 {
		t.Errorf("%d entries have no bug, want at least 15", classes[""])
	}
	if twoFaults < 6 {
		t.Errorf("%d bugs need two faults, want at least 6", twoFaults)
	}
}

// TestAll_twinsDifferOnlyInTheReconciler checks that both versions of an entry have the same world, which is created
// for each.
func TestAll_twinsDifferOnlyInTheReconciler(t *testing.T) {
	for _, e := range All() {
		if e.Buggy == nil {
			continue
		}
		buggy, correct := e.Buggy(), e.Correct()
		if (buggy.New == nil) == (buggy.Setup == nil) {
			t.Errorf("%s: the buggy version has both New and Setup, or none", e.Name)
		}
		if len(buggy.Given) != len(correct.Given) || len(buggy.Steps) != len(correct.Steps) ||
			len(buggy.World) != len(correct.World) {
			t.Errorf("%s: given, steps or world differ", e.Name)
		}
		for i := range buggy.Given {
			if buggy.Given[i] == correct.Given[i] {
				t.Errorf("%s: %s is shared between scenarios", e.Name, buggy.Given[i].GetName())
			}
		}
	}
}

// TestScheme_copiesShareNothing checks the copies that are written by hand.
func TestScheme_copiesShareNothing(t *testing.T) {
	w := widget("a", WidgetSpec{Data: map[string]string{"key": "before"}, Tags: []string{"before"}})
	w.Status.Members = []string{"before"}
	list := &WidgetList{Items: []Widget{*w}}
	copied := list.DeepCopyObject().(*WidgetList).Items[0]
	w.Spec.Data["key"], w.Spec.Tags[0], w.Status.Members[0] = "after", "after", "after"
	if got := copied.Spec.Data["key"] + copied.Spec.Tags[0] + copied.Status.Members[0]; got != "beforebeforebefore" {
		t.Errorf("the copy has changed with the original: %s", got)
	}
}
