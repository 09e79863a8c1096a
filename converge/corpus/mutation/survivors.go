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

// Survivors has a reason for each mutant that a default run does not find, but for those that are proved equivalent, by name.
var Survivors = survivors()

// reason is why some mutants survive.
type reason struct {
	missed bool
	why    string
	// mutants are the entries, by mistake and site.
	mutants map[string][]string
}

func survivors() map[string]Reason {
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

// Unexplained lists survivors without a reason or with one that is not true, and reasons for mutants that were found or, if the results are those of all, are
// not there.
func Unexplained(results []Result, all bool) []string {
	var lines []string
	left := maps.Clone(Survivors)
	for _, r := range results {
		_, known := left[r.Name]
		delete(left, r.Name)
		switch lives := !r.Killed && !r.Equivalent; {
		case lives && !known:
			lines = append(lines, "survivor without a reason: "+r.Name)
		case lives && r.Later != "" && !Survivors[r.Name].Missed:
			lines = append(lines, fmt.Sprintf("said to do no harm, and found by a longer search: %s (%s)", r.Name, r.Later))
		case !lives && known:
			lines = append(lines, fmt.Sprintf("reason for a mutant that does not survive: %s (%s)", r.Name, r.By))
		}
	}
	if !all {
		clear(left)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		lines = append(lines, "reason for a mutant that there is not: "+name)
	}
	return lines
}
