// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"maps"
	"slices"
)

// Reason explains why a mutant is not found.
type Reason struct {
	// Missed reports whether the mistake can do harm that converge does not detect. Otherwise the mutant is as correct
	// as the original.
	Missed bool
	Why    string
}

// Reasons returns a reason for each mutant that a default run does not find, except those that are proved equivalent,
// by name.
var Reasons = reasonsByName()

// reason is why some mutants survive.
type reason struct {
	missed bool
	why    string
	// mutants are the entries, by mistake and site.
	mutants map[string][]string
}

func reasonsByName() map[string]Reason {
	found := map[string]Reason{}
	for _, r := range reasons {
		for mistake, entries := range r.mutants {
			for _, entry := range entries {
				found[entry+": "+mistake] = Reason{Missed: r.missed, Why: r.why}
			}
		}
	}
	return found
}

// Unexplained lists survivors without a reason or with a wrong one, and reasons for mutants that do not survive, if
// survivors has all survivors.
func Unexplained(survivors []Result, all bool) []string {
	var lines []string
	left := maps.Clone(Reasons)
	for _, m := range survivors {
		reason, known := left[m.Name]
		if !m.Equivalent {
			delete(left, m.Name)
		}
		switch {
		case m.Equivalent:
		case !known:
			lines = append(lines, "survivor without a reason: "+m.Name)
		case m.Later != "" && !reason.Missed:
			lines = append(lines, fmt.Sprintf("explained as harmless, but found by a longer search: %s (%s)", m.Name, m.Later))
		}
	}
	if !all {
		clear(left)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		lines = append(lines, "reason for a mutant that is found, proved equivalent, or does not exist: "+name)
	}
	return lines
}
