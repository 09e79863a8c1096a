// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"fmt"
	"strings"
)

// width is the maximum length of a value in a report.
const width = 1000

// String returns the number of diverging sequences, and the findings.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(
		&b, "%d sequences, %d operations: %d sequences diverge, in %d ways\n", r.Sequences, r.Operations, r.Diverging,
		len(r.Findings),
	)
	for i, finding := range r.Findings {
		fmt.Fprintf(&b, "\n#%d %s", i+1, finding)
	}
	return b.String()
}

// String returns the sequence of a finding with both results.
func (f *Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d sequences, for example seed %d\n", f.Count, f.Seed)
	at := f.Divergences[0].Step
	for i, operation := range f.Sequence[:min(len(f.Sequence), at+1)] {
		mark := " "
		if i == at {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s %2d %s\n", mark, i+1, operation)
		if i != at {
			real, ours := outcome(f.Real, i), outcome(f.Ours, i)
			if real != ours {
				real += "    ours: " + ours
			}
			fmt.Fprintf(&b, "       %s\n", real)
		}
	}
	if at == len(f.Sequence) {
		b.WriteString(">    afterwards\n")
	}
	for i, d := range f.Divergences {
		if i == 6 {
			fmt.Fprintf(&b, "       and %d more\n", len(f.Divergences)-i)
			break
		}
		fmt.Fprintf(
			&b, "       %s%s\n         real: %s\n         ours: %s\n", d.Where, d.Path, shorten(show(d.Real)),
			shorten(show(d.Ours)),
		)
	}
	return b.String()
}

// outcome returns the result of an operation in one word.
func outcome(t *Transcript, i int) string {
	c := newCanonical(t)
	answers := t.Steps[i].Answers
	if len(answers) == 0 {
		return "no call"
	}
	last := answers[len(answers)-1]
	switch {
	case last.Failure != nil:
		return shorten(c.text(last.Failure.Text))
	case t.Steps[i].Verb == List:
		return fmt.Sprintf("%d items", len(last.Items))
	}
	return "ok"
}

func shorten(text string) string {
	if len(text) > width {
		return text[:width] + "…"
	}
	return text
}
