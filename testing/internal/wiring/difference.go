// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"fmt"
	"slices"
	"strings"
)

// Difference is the difference of two wirings, with a line for each entry of their fields.
type Difference struct {
	lines []string
	found bool
}

// Add compares the entries of a field, in any order. A line begins with a - if only the expected field has the entry,
// and with a + if only the observed field has it.
func (d *Difference) Add(field string, expected, observed []string) {
	all := slices.Concat(expected, observed)
	slices.Sort(all)
	for _, entry := range slices.Compact(all) {
		mark := " "
		if !slices.Contains(observed, entry) {
			mark = "-"
		} else if !slices.Contains(expected, entry) {
			mark = "+"
		}
		d.found = d.found || mark != " "
		if entry != "" {
			d.lines = append(d.lines, fmt.Sprintf("%s %s: %s", mark, field, entry))
		}
	}
}

// Text returns the lines and the notes, or "" if all fields have equal entries.
func (d *Difference) Text(notes []string) string {
	if !d.found {
		return ""
	}
	lines := slices.Clone(d.lines)
	for _, note := range notes {
		lines = append(lines, "note: "+note)
	}
	return strings.Join(lines, "\n")
}
