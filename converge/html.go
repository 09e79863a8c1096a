// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
)

//go:embed html_page.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// HTML returns the failure as a page: the violation, the faults, how to replay it, what was tried before, and a drawing
// of the run. The page is a single file without references, which can be kept, printed and sent.
func (f *Failure) HTML() ([]byte, error) {
	d := newDrawing(f.entries, f.arrivals)
	p := pageOf{
		Test:      f.test,
		Violation: f.Violation,
		Means:     oracleMeanings[f.Violation.Oracle],
		Walk:      f.walk,
		Faults:    f.shownFaults(),
		Hint:      f.Hint,
		Command:   f.command(),
		Tried:     f.triedText(),
		LeftOut:   f.leftOut,
		Drawing:   d,
		Rows:      f.rows(d),
		Lines:     len(f.entries),
	}
	for _, r := range p.Rows {
		if r.Matters && r.Gap == 0 {
			p.Matters++
		}
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("page of %s: %w", f.test, err)
	}
	return b.Bytes(), nil
}

// pageOf is the content of the page.
type pageOf struct {
	Test      string
	Violation Violation
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

func (f *Failure) shownFaults() []shownFault {
	rows := make([]shownFault, 0, len(f.schedule))
	for _, d := range f.schedule {
		rows = append(rows, shownFault{
			Fault: string(d.fault), At: d.point.String(), Means: d.fault.row().meaning, Number: f.lineOf(d),
		})
	}
	slices.SortStableFunc(rows, func(a, b shownFault) int { return a.Number - b.Number })
	return rows
}

// lineOf returns the number of the line in which a fault is injected, or 0.
func (f *Failure) lineOf(d deviation) int {
	if i, ok := f.hits[d.point]; ok && i < len(f.entries) && d.fault != FaultListOrder {
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
	Mark                                  mark
	// Means is the meaning of a fault.
	Means string
	// Process and Version are 0 if they are not known.
	Process int
	Version int64
	Shapes  []shape
}

func (f *Failure) rows(d *drawing) []row {
	matters, faulty := map[int]bool{}, map[int]bool{}
	for _, i := range f.lines() {
		matters[i] = true
	}
	for _, d := range f.schedule {
		faulty[f.lineOf(d)-1] = true
	}
	var rows []row
	arrivals := f.arrivals
	hidden := 0
	gap := func() {
		if hidden > 0 {
			rows = append(rows, row{Gap: hidden, Matters: true, Shapes: d.gap()})
		}
		hidden = 0
	}
	for i, e := range f.entries {
		for len(arrivals) > 0 && arrivals[0].after <= i {
			rows = append(rows, rowOf(arrivals[0].entry, d))
			arrivals = arrivals[1:]
		}
		if matters[i] {
			gap()
		} else {
			hidden++
		}
		if faulty[i] && e.mark == "" {
			e.mark = faultMark // a step of the users during a reconcile
		}
		r := rowOf(e, d)
		r.Number, r.Matters = i+1, matters[i]
		rows = append(rows, r)
	}
	for _, a := range arrivals {
		rows = append(rows, rowOf(a.entry, d))
	}
	gap()
	return rows
}

func rowOf(e entry, d *drawing) row {
	return row{
		Time: e.at.Round(time.Millisecond).String(), Who: e.who, What: e.what, Cache: e.cache,
		Result: e.result, Short: shorten(e.result), Mark: e.mark, Means: e.fault.row().meaning,
		Process: e.process, Version: e.version, Shapes: d.row(e),
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

// triedText describes what was tried before the failure was found.
func (f *Failure) triedText() string {
	c := f.tried
	if len(f.walk) > 0 && c == nil {
		return "These changes lead to the failure without any fault. They are the fewest and smallest ones."
	}
	if c == nil {
		return "This schedule was saved or given. No other schedule was tried before."
	}
	if c.Schedules == 0 {
		return "The failure happens without any fault, so that no fault was tried."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s, with seed %d. ", plural(c.Schedules, "run"), c.Elapsed.Round(time.Millisecond), c.Seed)
	fmt.Fprintf(&b,
		"The run without faults has %s and %s for faults: %d faults, %d of them equivalent to "+
			"others, and %d tried one at a time.",
		plural(c.Reconciles, "reconcile"), plural(c.Points, "point"), c.Enumerated, c.Pruned, c.Singles)
	if c.Recoveries+c.Pairs+c.Random > 0 {
		fmt.Fprintf(&b, " After that %d second faults, %d pairs, and %d random schedules.", c.Recoveries, c.Pairs, c.Random)
	}
	fmt.Fprintf(&b, " The fewest faults were found with %s.", plural(f.Shrinks, "further run"))
	return b.String()
}
