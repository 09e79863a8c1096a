// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"
	"slices"
	"strings"
)

// Certificate formats what a search has tried: a paragraph, further lines, a line for each advice, and a line for each
// reason why something was left out.
func Certificate(paragraph string, lines, advice, leftOut []string) string {
	all := slices.Concat([]string{paragraph}, lines)
	for _, line := range advice {
		all = append(all, "advice: "+line)
	}
	return strings.Join(append(all, leftOut...), "\n")
}

// Verdict formats how a search has ended: with a failure, for all singles, or for some of them if any are left. The
// texts end with what is tried one at a time.
func Verdict(failed bool, all, some string, tried, left int, leftOut []string) string {
	if failed {
		return "a failure was found"
	}
	text := all
	if left > 0 {
		text = fmt.Sprintf(some, tried, tried+left)
	}
	if len(leftOut) > 0 {
		text += ", except for what is left out"
	}
	return text
}

// Left formats how many runs are left for a longer search.
func Left(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d not run, -converge.budget is for more)", n)
}

// SinglesLeft formats how many single faults are left for a longer search.
func SinglesLeft(n int, failed bool) string {
	if n == 0 || failed {
		return ""
	}
	return fmt.Sprintf(", %d not run: -converge.singles runs all", n)
}
