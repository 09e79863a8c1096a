// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// told is what a timeline has recorded.
type told struct {
	entries []entry
	// arrivals are only for drawings. hits are the numbers of entries at the time of each injected fault.
	arrivals []arrival
	hits     map[inject.Point]int
}

// explained is a failure with what is known about it.
type explained struct {
	told

	violation finding.Violation
	schedule  inject.Schedule
	// proof are the indexes of the entries that show what the hint states.
	proof []int
	// walk describes the changes by users, if the failure is one of States.
	walk []string
	// test is the name of the test, and command what replays the failure.
	test, hint, command string
	// tried says what was tried before.
	tried string
	// leftOut are the oracles that are off and the faults that are disabled, with the reasons.
	leftOut []string
}

// timeline formats the most important entries.
func (f *explained) timeline() string { return f.format(f.lines()) }

// full formats all entries.
func (f told) full() string {
	all := make([]int, len(f.entries))
	for i := range all {
		all[i] = i
	}
	return f.format(all)
}

func (f told) format(lines []int) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, " #\tt\twho\twhat\tcache\tresult")
	last := -1
	for _, i := range lines {
		if last >= 0 && i > last+1 {
			fmt.Fprintf(w, " \t\t\t… %s\t\t\n", phrase.Plural(i-last-1, "more line"))
		}
		last = i
		e := f.entries[i]
		mark := ""
		if e.mark != "" {
			mark = "  ◄ " + string(e.mark)
		}
		// The last column is not aligned, so that a long result does not make all lines long.
		fmt.Fprintf(
			w, "%2d\t%s\t%s\t%s\t%s\t%s%s\n", i+1, e.at.Round(time.Millisecond), e.who, phrase.Shorten(e.what), e.cache,
			phrase.Shorten(e.result), mark,
		)
	}
	_ = w.Flush()
	var trimmed strings.Builder
	for line := range strings.Lines(b.String()) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return trimmed.String()
}
