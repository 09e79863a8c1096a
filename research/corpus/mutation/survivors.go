// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"maps"
	"slices"
)

// Reason tells why a mutant is not found.
type Reason struct {
	// Missed is true if the mistake can do harm that is not seen. Otherwise the mutant is as correct as the original.
	Missed bool
	Why    string
}

// Reasons has one for each mutant that a default run does not find, but for those that are proved equivalent, by name.
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

// Unexplained lists survivors without a reason, or with one that is not true, and reasons for mutants that, if the
// survivors are all that there are, do not survive.
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
			lines = append(lines, fmt.Sprintf("said to do no harm, and found by a longer search: %s (%s)", m.Name, m.Later))
		}
	}
	if !all {
		clear(left)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		lines = append(lines, "reason for a mutant that is found, proved equivalent, or not there: "+name)
	}
	return lines
}
