// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"slices"
	"strings"
)

// contextLines is how many equal lines surround a difference.
const contextLines = 3

// line is a line of a diff: ' ', '-' or '+', and the text.
type line struct {
	kind byte
	text string
}

// unified returns the difference between two files as diff -u prints it.
func unified(name, before, after string) string {
	if before == after {
		return ""
	}
	lines := difference(strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n"))
	oldName, newName := "a/"+name, "b/"+name
	if before == "" {
		oldName = "/dev/null"
	}
	if after == "" {
		newName = "/dev/null"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", oldName, newName)
	oldAt, newAt := 1, 1
	for i := 0; i < len(lines); {
		if lines[i].kind == ' ' {
			i, oldAt, newAt = i+1, oldAt+1, newAt+1
			continue
		}
		start := max(0, i-contextLines)
		end, last := i, i
		for end < len(lines) && end-last <= 2*contextLines {
			if lines[end].kind != ' ' {
				last = end
			}
			end++
		}
		end = min(len(lines), last+1+contextLines)
		oldStart, newStart := oldAt-(i-start), newAt-(i-start)
		oldCount, newCount := 0, 0
		for _, l := range lines[start:end] {
			if l.kind != '+' {
				oldCount++
			}
			if l.kind != '-' {
				newCount++
			}
		}
		if oldCount == 0 {
			oldStart--
		}
		if newCount == 0 {
			newStart--
		}
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", oldStart, oldCount, newStart, newCount)
		for _, l := range lines[start:end] {
			b.WriteByte(l.kind)
			b.WriteString(strings.TrimSuffix(l.text, "\n") + "\n")
			if !strings.HasSuffix(l.text, "\n") {
				b.WriteString("\\ No newline at end of file\n")
			}
		}
		oldAt, newAt, i = oldStart+oldCount, newStart+newCount, end
		if oldCount == 0 {
			oldAt++
		}
		if newCount == 0 {
			newAt++
		}
	}
	return b.String()
}

// difference returns a shortest difference of two lists of lines.
func difference(a, b []string) []line {
	a, b = withoutEmptyEnd(a), withoutEmptyEnd(b)
	var start, end []line
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		start, a, b = append(start, line{' ', a[0]}), a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		end, a, b = append(end, line{' ', a[len(a)-1]}), a[:len(a)-1], b[:len(b)-1]
	}
	slices.Reverse(end)
	return slices.Concat(start, longestCommon(a, b), end)
}

func longestCommon(a, b []string) []line {
	// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:]
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var lines []line
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, line{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, line{'-', a[i]})
			i++
		default:
			lines = append(lines, line{'+', b[j]})
			j++
		}
	}
	return lines
}

func withoutEmptyEnd(lines []string) []string {
	if len(lines) > 0 && lines[len(lines)-1] == "" {
		return lines[:len(lines)-1]
	}
	return lines
}
