// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

//go:embed html_page.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Html returns the failure as a page.
func (f *Failure) Html() ([]byte, error) {
	d := newDrawing(f.Entries, f.Arrivals)
	p := pageOf{
		Test:      f.Test,
		Violation: f.Violation,
		Means:     finding.Meanings[f.Violation.Oracle],
		Walk:      f.Walk,
		Faults:    f.ShownFaults(),
		Hint:      f.Hint,
		Command:   f.Command,
		Tried:     f.Tried,
		LeftOut:   f.LeftOut,
		Drawing:   d,
		Rows:      f.rows(d),
		Lines:     len(f.Entries),
	}
	for _, r := range p.Rows {
		if r.Matters && r.Gap == 0 {
			p.Matters++
		}
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("page of %s: %w", f.Test, err)
	}
	return b.Bytes(), nil
}

// pageOf is the content of the page.
type pageOf struct {
	Test      string
	Violation finding.Violation
	Means     string
	Walk      []string
	Faults    []shownFault
	Hint      string
	Command   string
	Tried     string
	LeftOut   []string
	Drawing   *drawing
	Rows      []row
	// Lines counts the lines of the timeline, and Matters those that are visible at first.
	Lines, Matters int
}

// shownFault is a fault and the number of its line, or 0.
type shownFault struct {
	Fault, At, Means string
	Number           int
}

// ShownFaults returns the faults in the order of the lines in which they are injected.
func (f *Failure) ShownFaults() []shownFault {
	rows := make([]shownFault, 0, len(f.Schedule))
	for _, d := range f.Schedule {
		rows = append(rows, shownFault{
			Fault: string(d.Fault), At: d.Point.String(), Means: d.Fault.Row().Meaning, Number: f.lineOf(d),
		})
	}
	slices.SortStableFunc(rows, func(a, b shownFault) int { return a.Number - b.Number })
	return rows
}

// lineOf returns the number of the line in which a fault is injected, or 0.
func (f *Failure) lineOf(d inject.Deviation) int {
	if i, ok := f.Hits[d.Point]; ok && i < len(f.Entries) && d.Fault != inject.ListOrder {
		return i + 1
	}
	return 0
}

// row is a line of the timeline, a gap between lines, or the arrival of an event, which has no number.
type row struct {
	Number int
	// Gap is the number of lines that a row replaces.
	Gap                                   int
	Matters                               bool
	Time, Who, What, Cache, Result, Short string
	Mark                                  Mark
	// Means is the meaning of a fault.
	Means string
	// Process and Version are 0 if they are not known.
	Process int
	Version int64
	Shapes  []shape
}

func (f *Failure) rows(d *drawing) []row {
	matters, faulty := map[int]bool{}, map[int]bool{}
	for _, i := range f.Lines() {
		matters[i] = true
	}
	for _, d := range f.Schedule {
		faulty[f.lineOf(d)-1] = true
	}
	var rows []row
	arrivals := f.Arrivals
	hidden := 0
	gap := func() {
		if hidden > 0 {
			rows = append(rows, row{Gap: hidden, Matters: true, Shapes: d.gap()})
		}
		hidden = 0
	}
	for i, e := range f.Entries {
		for len(arrivals) > 0 && arrivals[0].After <= i {
			rows = append(rows, rowOf(arrivals[0].Entry, d))
			arrivals = arrivals[1:]
		}
		if matters[i] {
			gap()
		} else {
			hidden++
		}
		if faulty[i] && e.Mark == "" {
			e.Mark = FaultMark // a step of the users during a reconcile
		}
		r := rowOf(e, d)
		r.Number, r.Matters = i+1, matters[i]
		rows = append(rows, r)
	}
	for _, a := range arrivals {
		rows = append(rows, rowOf(a.Entry, d))
	}
	gap()
	return rows
}

func rowOf(e Entry, d *drawing) row {
	return row{
		Time: e.At.Round(time.Millisecond).String(), Who: e.Who, What: e.What, Cache: e.Cache,
		Result: e.Result, Short: phrase.Shorten(e.Result), Mark: e.Mark, Means: e.Fault.Row().Meaning,
		Process: e.Process, Version: e.Version, Shapes: d.row(e),
	}
}

// Many reports whether the lanes are too narrow for their names.
func (d *drawing) Many() bool { return len(d.Lanes) > 8 }

// Line is the whole line, as a tooltip.
func (r row) Line() string {
	parts := []string{r.Who, r.What}
	for _, part := range []string{r.Cache, r.Result, string(r.Mark)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " · ")
}

// Position describes the position of the cache.
func (r row) Position() string {
	at, of, behind := strings.Cut(strings.TrimPrefix(r.Cache, "cache@"), " of ")
	if behind {
		return fmt.Sprintf("at version %s; events up to version %s are missing", at, of)
	}
	return "at version " + at
}
