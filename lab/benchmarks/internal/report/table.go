// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Table writes the medians as text: a block for each metric with a line for each contender. Each value is followed by
// its factor to the value at the smallest size. Below are the ratios to the baseline.
func (r *Run) Table(out io.Writer) error {
	var text strings.Builder
	e := r.Environment
	fmt.Fprintf(
		&text, "medians of %s, %d workers, %s %s, %s, Kubernetes %s", plural(r.Rounds, "round"), e.Workers, e.Go, e.Platform,
		plural(e.CPUs, "CPU"), e.Kubernetes,
	)
	if e.Logging {
		text.WriteString(", with a logger")
	}
	text.WriteString("\n")
	for _, w := range r.Workloads {
		fmt.Fprintf(&text, "\n%s: %s\n\n", w.Name, w.About)
		align(&text, w.rows())
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func plural(count int, noun string) string {
	if count != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", count, noun)
}

// rows are the cells of the table. A row without cells is an empty line.
func (w *Workload) rows() [][]string {
	sizes, contenders := w.Sizes(), w.Contenders()
	header := []string{"", w.Noun + ":"}
	for _, size := range sizes {
		header = append(header, thousands(strconv.Itoa(size)), "")
	}
	rows := [][]string{header}
	for i, metric := range w.Metrics {
		label := metric.label()
		if !metric.Tally || i == 0 || !w.Metrics[i-1].Tally {
			rows = append(rows, nil)
		}
		for _, contender := range contenders {
			row := []string{label, contender}
			label = ""
			for _, size := range sizes {
				cell, growth := "–", ""
				if value, ok := w.Median(metric.Name, contender, size); ok || metric.Tally {
					cell = number(value) // a missing count is 0
				}
				if by, ok := w.Growth(metric.Name, contender, size); ok && size != sizes[0] && !metric.Tally {
					growth = "×" + factor(by)
				}
				row = append(row, cell, growth)
			}
			rows = append(rows, row)
		}
		for _, contender := range contenders {
			if contender != HandWritten && slices.Contains(contenders, HandWritten) && !metric.Tally {
				rows = append(rows, w.ratios(metric, contender))
			}
		}
	}
	return rows
}

func (w *Workload) ratios(metric Metric, contender string) []string {
	row := []string{"", "ratio"}
	for _, size := range w.Sizes() {
		cell := "–"
		if by, ok := w.Ratio(metric.Name, contender, size); ok {
			cell = factor(by)
		}
		row = append(row, cell, "")
	}
	return row
}

// align writes rows with columns of equal width: the first two, which are labels, are aligned to the left, values to
// the right and their factors to the left.
func align(text *strings.Builder, rows [][]string) {
	widths := []int{}
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			switch {
			case i < 2:
				fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
			case i%2 == 0:
				fmt.Fprintf(&line, "%*s ", widths[i], cell)
			default:
				fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
			}
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
