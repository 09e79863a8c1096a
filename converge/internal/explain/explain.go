// SPDX-License-Identifier: Apache-2.0

// Package explain shows a failure to people: as a timeline of its most important lines, with the usual reason for it,
// and as a page. It knows what a timeline has recorded, and neither runs nor scenarios.
package explain

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// Log is what a timeline has recorded.
type Log struct {
	Entries []Entry
	// Arrivals are only for drawings. Hits are the numbers of entries at the time of each injected fault.
	Arrivals []Arrival
	Hits     map[inject.Point]int
}

// Failure is a failure with what is known about it.
type Failure struct {
	Log

	Violation finding.Violation
	Schedule  inject.Schedule
	// Proof are the indexes of the entries that show what the hint states.
	Proof []int
	// Walk describes the changes by users, if the failure is one of States.
	Walk []string
	// Test is the name of the test, Hint the usual reason, and Command what replays the failure.
	Test, Hint, Command string
	// Tried says what was tried before.
	Tried string
	// LeftOut are the oracles that are off and the faults that are disabled, with the reasons.
	LeftOut []string
}

// Timeline formats the most important entries.
func (f *Failure) Timeline() string { return f.format(f.Lines()) }

// Full formats all entries.
func (f Log) Full() string {
	all := make([]int, len(f.Entries))
	for i := range all {
		all[i] = i
	}
	return f.format(all)
}

func (f Log) format(lines []int) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, " #\tt\twho\twhat\tcache\tresult")
	last := -1
	for _, i := range lines {
		if last >= 0 && i > last+1 {
			fmt.Fprintf(w, " \t\t\t… %s\t\t\n", phrase.Plural(i-last-1, "more line"))
		}
		last = i
		e := f.Entries[i]
		mark := ""
		if e.Mark != "" {
			mark = "  ◄ " + string(e.Mark)
		}
		// The last column is not aligned, so that a long result does not make all lines long.
		fmt.Fprintf(
			w, "%2d\t%s\t%s\t%s\t%s\t%s%s\n", i+1, e.At.Round(time.Millisecond), e.Who, phrase.Shorten(e.What), e.Cache,
			phrase.Shorten(e.Result), mark,
		)
	}
	_ = w.Flush()
	var trimmed strings.Builder
	for line := range strings.Lines(b.String()) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return trimmed.String()
}
