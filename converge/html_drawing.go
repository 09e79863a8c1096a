// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"trueup.dev/converge/internal/inject"
)

// drawing has a lane for each participant, and time goes downwards. Each row is drawn separately, from its top to its
// bottom, so that rows can be hidden and can grow.
type drawing struct {
	Lanes []lane
	// at has the positions of the lanes.
	at map[place]float64

	// The following fields are the state between two rows.
	alive bool
	open  []block
	// held are the caches whose events are delayed.
	held    map[place]bool
	version int64
}

// lane is a column.
type lane struct {
	place

	// Title is above Name.
	Title, Name string
}

// block is a reconcile that is running. Concurrent reconciles have different slots.
type block struct {
	who  string
	slot int
}

// shape is a part of a row: a symbol or a text at X1, or a line. X are percents of the width, Y pixels from the top or
// "100%".
type shape struct {
	Class  string
	X1, X2 float64
	Y1, Y2 string
	// Shift moves a shape to the right, in pixels.
	Shift        int
	Symbol, Text string
}

// The heights in a row: a request is in the middle, its response is later, and a block opens and closes around the
// middle.
const (
	top, opens, middle, closes, later, bottom = "0", "6", "15", "24", "24", "100%"
)

// blockWidth is the width of a stroke in the style of the page.
const blockWidth = 14

func newDrawing(entries []entry, arrivals []arrival) *drawing {
	d := &drawing{at: map[place]float64{}, alive: true, held: map[place]bool{}}
	add := func(places ...place) {
		for _, p := range places {
			if _, ok := d.at[p]; !ok && p != (place{}) {
				d.at[p] = 0
				d.Lanes = append(d.Lanes, lane{place: p})
			}
		}
	}
	add(theProcess, theServer, other("user"))
	for _, e := range entries {
		add(e.from, e.to)
	}
	for _, a := range arrivals {
		add(a.from, a.to)
	}
	slices.SortStableFunc(d.Lanes, func(a, b lane) int { return cmp.Compare(a.role, b.role) })
	for i := range d.Lanes {
		l := &d.Lanes[i]
		d.at[l.place] = tenth((float64(i) + 0.5) * 100 / float64(len(d.Lanes)))
		switch l.role {
		case outsideRole:
			l.Name = "outside"
		case processRole:
			l.Name = "process"
		case cacheRole:
			l.Title = "cache"
			l.Name, _, _ = strings.Cut(l.name, ".")
		case serverRole:
			l.Name = "API server"
		case otherRole:
			l.Name = l.name
		}
	}
	return d
}

// tenth rounds to a tenth.
func tenth(x float64) float64 { return math.Round(10*x) / 10 }

// row draws an entry, and updates the state.
func (d *drawing) row(e entry) []shape {
	before := slices.Clone(d.open)
	var shapes []shape
	if e.turn == dying || e.turn == starting || e.news == holding || e.news == catchingUp {
		shapes = d.lanes(top, middle)
		d.become(e)
		shapes = append(shapes, d.lanes(middle, bottom)...)
	} else {
		d.become(e)
		shapes = d.lanes(top, bottom)
	}
	shapes = append(shapes, d.arrow(e)...)
	for _, b := range before {
		y2 := bottom
		if !slices.Contains(d.open, b) {
			y2 = closes
		}
		shapes = append(shapes, d.block(b, top, y2))
	}
	for _, b := range d.open {
		if !slices.Contains(before, b) {
			shapes = append(shapes, d.block(b, opens, bottom))
		}
	}
	for _, b := range append(before, d.open...) {
		if number, ok := strings.CutPrefix(b.who, "reconcile "); ok && e.who == b.who {
			shapes = append(shapes, shape{Class: "number", X1: d.at[theProcess], Shift: b.slot * blockWidth, Text: number})
			break
		}
	}
	shapes = append(shapes, d.signs(e)...)
	d.version = max(d.version, e.version)
	return shapes
}

// gap draws a row that replaces hidden rows.
func (d *drawing) gap() []shape {
	shapes := d.lanes(top, bottom)
	for _, b := range d.open {
		shapes = append(shapes, d.block(b, top, bottom))
	}
	return shapes
}

// become updates the state.
func (d *drawing) become(e entry) {
	switch e.turn {
	case beginning:
		slot := 0
		for slices.ContainsFunc(d.open, func(b block) bool { return b.slot == slot }) {
			slot++
		}
		d.open = append(d.open, block{e.who, slot})
	case ending:
		d.open = slices.DeleteFunc(slices.Clone(d.open), func(b block) bool { return b.who == e.who })
	case dying:
		d.alive, d.open = false, nil
		clear(d.held)
	case starting: // the end of the previous process may have no entry
		d.alive, d.open = true, nil
		clear(d.held)
	}
	switch e.news {
	case holding:
		d.held[e.to] = true
	case catchingUp:
		delete(d.held, e.to)
	case arriving, repeating:
	}
}

func (d *drawing) block(b block, y1, y2 string) shape {
	x := d.at[theProcess]
	return shape{Class: "block", X1: x, X2: x, Y1: y1, Y2: y2, Shift: b.slot * blockWidth}
}

// lanes draws the line of each lane.
func (d *drawing) lanes(y1, y2 string) []shape {
	shapes := make([]shape, 0, len(d.Lanes))
	for _, l := range d.Lanes {
		s := shape{Class: "lane", X1: d.at[l.place], X2: d.at[l.place], Y1: y1, Y2: y2}
		if d.held[l.place] {
			s.Class = "lane held"
		}
		if l.place != theProcess || d.alive {
			shapes = append(shapes, s)
		}
	}
	return shapes
}

// arrow draws an arrow between lanes.
func (d *drawing) arrow(e entry) []shape {
	switch {
	case e.from == (place{}):
		return []shape{{Class: "across " + string(e.mark), X1: 0, X2: 100, Y1: middle, Y2: middle}}
	case e.news == repeating, e.turn != 0 && e.to == (place{}):
		return nil
	case e.to == (place{}):
		return []shape{{Class: "arrow", X1: d.at[e.from], Y1: middle, Symbol: "ring"}}
	case e.news == catchingUp:
		return []shape{{Class: "arrow", X1: d.at[e.to], Y1: middle, Symbol: "ring"}}
	}
	from, to := d.at[e.from], d.at[e.to]
	// An arrow that does not arrive ends between two lanes, so that it does not seem to arrive at another lane.
	half := math.Copysign(50/float64(len(d.Lanes)), to-from)
	soon, almost := tenth(from+half), tenth(to-half)
	class := "arrow " + string(e.mark)
	switch {
	case e.news != 0, e.fault == inject.HandOver, e.from == theProcess && e.mark == staleMark && e.to == theServer:
		class += " event"
	case d.effect(e) || e.to == theOutside && e.weight >= write:
		class += " effect"
	}
	line := func(to float64) shape { return shape{Class: class, X1: from, X2: to, Y1: middle, Y2: middle} }
	end := func(symbol string, x float64) shape { return shape{Class: class, X1: x, Y1: middle, Symbol: symbol} }
	head := "right"
	if to < from {
		head = "left"
	}
	switch {
	case e.fault == inject.CrashBefore:
		return []shape{line(soon), end("cross", soon)}
	case e.fault == inject.TimeoutLost, e.news == holding:
		return []shape{line(almost), end("cross", almost)}
	case e.fault == inject.HandOver:
		return []shape{line(almost)}
	case e.fault == inject.TimeoutApplied, e.fault == inject.CrashAfter:
		return []shape{
			line(to), end(head, to),
			{Class: "arrow event fault", X1: to, X2: soon, Y1: later, Y2: later},
			{Class: "arrow fault", X1: soon, Y1: later, Symbol: "cross"},
		}
	case e.failed && e.to.role != cacheRole:
		return []shape{line(to), end("cross", to)}
	}
	return []shape{line(to), end(head, to)}
}

// effect reports whether an entry has changed something in the API server.
func (d *drawing) effect(e entry) bool { return e.to == theServer && e.version > d.version }

// signs draws marks and versions, on the side where no arrow arrives.
func (d *drawing) signs(e entry) []shape {
	var shapes []shape
	version := ""
	if position, ok := strings.CutPrefix(e.cache, "cache"); ok && e.to.role == cacheRole {
		version = position
	} else if d.effect(e) {
		version = "v" + strconv.FormatInt(e.version, 10)
	}
	if version != "" {
		s := shape{Class: "version " + string(e.mark), X1: d.at[e.to], Shift: 12, Text: version}
		if d.at[e.from] > d.at[e.to] {
			s.Class, s.Shift = s.Class+" before", -12
		}
		shapes = append(shapes, s)
	}
	switch {
	case e.turn == dying:
		shapes = append(shapes, shape{Class: "arrow fault", X1: d.at[theProcess], Y1: closes, Symbol: "cross"})
	case e.turn == ending && e.failed:
		shapes = append(shapes, shape{
			Class: "arrow", X1: d.at[theProcess], Y1: middle, Shift: blockWidth + 2, Symbol: "cross",
		})
	case e.turn == starting:
		text := "process " + strconv.Itoa(e.process)
		if e.program != "" {
			text += ", " + e.program
		}
		shapes = append(shapes, shape{Class: "arrow", X1: d.at[theProcess], Y1: middle, Symbol: "ring"},
			shape{Class: "version", X1: d.at[theProcess], Shift: 12, Text: text})
	}
	if e.mark == "" {
		return shapes
	}
	sign := shape{Class: "sign " + string(e.mark), X1: d.at[e.from], Y1: middle, Symbol: string(e.mark)}
	switch {
	case e.from == (place{}):
		sign.X1 = d.at[theServer]
	case e.to.role == cacheRole:
		sign.X1 = d.at[e.to]
	case e.from == theProcess && e.to == theOutside:
		sign.Shift = blockWidth + 4
	case e.from == theProcess:
		sign.Shift = -blockWidth - 4
	}
	return append(shapes, sign)
}
