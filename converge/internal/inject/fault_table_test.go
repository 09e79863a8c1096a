// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var guideRow = regexp.MustCompile(`(?m)^\| \[([a-z-]+)\]\(#([a-z-]+)\) \| (.*) \| (.*) \|$`)

// TestFaultTableOfGuide checks that the tables of the guide are the table of faults.
func TestFaultTableOfGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/converge/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	type guideFault struct{ Meaning, Where string }
	got, want := map[string]guideFault{}, map[string]guideFault{}
	for _, match := range guideRow.FindAllStringSubmatch(string(guide), -1) {
		if match[1] != match[2] {
			t.Errorf("the link of %s goes to %s", match[1], match[2])
		}
		if _, twice := got[match[1]]; twice {
			t.Errorf("%s has two rows", match[1])
		}
		got[match[1]] = guideFault{match[3], match[4]}
	}
	for _, row := range Table {
		var names []string
		for i, name := range placeNames {
			if row.at&(1<<i) != 0 {
				names = append(names, name)
			}
		}
		where := strings.Join(names, ", ")
		if row.Disabled {
			where += "; disabled by default"
		}
		want[string(row.fault)] = guideFault{row.Meaning, where}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/converge/faults.md (-want +got):\n%s", diff)
	}
}

// TestFaultTable checks that each fault has a row with all that code relies on.
func TestFaultTable(t *testing.T) {
	for i, row := range Table {
		if row.Meaning == "" || row.at == 0 || row.at >= 1<<len(placeNames) {
			t.Errorf("the row of %s is incomplete: %+v", row.fault, row)
		}
		if row.fault.Row() != &Table[i] {
			t.Errorf("%s has two rows", row.fault)
		}
		for _, simpler := range row.Simpler {
			if simpler == row.fault || simpler.Row().fault != simpler {
				t.Errorf("%s has the simpler form %q", row.fault, simpler)
			}
		}
	}
}
