// SPDX-License-Identifier: Apache-2.0

package explain

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
	at map[Place]float64

	// The following fields are the state between two rows.
	alive bool
	open  []block
	// held are the caches whose events are delayed.
	held    map[Place]bool
	version int64
}

// lane is a column.
type lane struct {
	Place

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

func newDrawing(entries []Entry, arrivals []Arrival) *drawing {
	d := &drawing{at: map[Place]float64{}, alive: true, held: map[Place]bool{}}
	add := func(places ...Place) {
		for _, p := range places {
			if _, ok := d.at[p]; !ok && p != (Place{}) {
				d.at[p] = 0
				d.Lanes = append(d.Lanes, lane{Place: p})
			}
		}
	}
	add(TheProcess, TheServer, Other("user"))
	for _, e := range entries {
		add(e.From, e.To)
	}
	for _, a := range arrivals {
		add(a.From, a.To)
	}
	slices.SortStableFunc(d.Lanes, func(a, b lane) int { return cmp.Compare(a.Role, b.Role) })
	for i := range d.Lanes {
		l := &d.Lanes[i]
		d.at[l.Place] = tenth((float64(i) + 0.5) * 100 / float64(len(d.Lanes)))
		switch l.Role {
		case OutsideRole:
			l.Name = "outside"
		case ProcessRole:
			l.Name = "process"
		case CacheRole:
			l.Title = "cache"
			l.Name, _, _ = strings.Cut(l.Place.Name, ".")
		case ServerRole:
			l.Name = "API server"
		case otherRole:
			l.Name = l.Place.Name
		}
	}
	return d
}

// tenth rounds to a tenth.
func tenth(x float64) float64 { return math.Round(10*x) / 10 }

// row draws an entry, and updates the state.
func (d *drawing) row(e Entry) []shape {
	before := slices.Clone(d.open)
	var shapes []shape
	if e.Turn == Dying || e.Turn == Starting || e.News == Holding || e.News == CatchingUp {
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
		if number, ok := strings.CutPrefix(b.who, "reconcile "); ok && e.Who == b.who {
			shapes = append(shapes, shape{Class: "number", X1: d.at[TheProcess], Shift: b.slot * blockWidth, Text: number})
			break
		}
	}
	shapes = append(shapes, d.signs(e)...)
	d.version = max(d.version, e.Version)
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
func (d *drawing) become(e Entry) {
	switch e.Turn {
	case Beginning:
		slot := 0
		for slices.ContainsFunc(d.open, func(b block) bool { return b.slot == slot }) {
			slot++
		}
		d.open = append(d.open, block{e.Who, slot})
	case Ending:
		d.open = slices.DeleteFunc(slices.Clone(d.open), func(b block) bool { return b.who == e.Who })
	case Dying:
		d.alive, d.open = false, nil
		clear(d.held)
	case Starting: // the end of the previous process may have no entry
		d.alive, d.open = true, nil
		clear(d.held)
	}
	switch e.News {
	case Holding:
		d.held[e.To] = true
	case CatchingUp:
		delete(d.held, e.To)
	case Arriving, Repeating:
	}
}

func (d *drawing) block(b block, y1, y2 string) shape {
	x := d.at[TheProcess]
	return shape{Class: "block", X1: x, X2: x, Y1: y1, Y2: y2, Shift: b.slot * blockWidth}
}

// lanes draws the line of each lane.
func (d *drawing) lanes(y1, y2 string) []shape {
	shapes := make([]shape, 0, len(d.Lanes))
	for _, l := range d.Lanes {
		s := shape{Class: "lane", X1: d.at[l.Place], X2: d.at[l.Place], Y1: y1, Y2: y2}
		if d.held[l.Place] {
			s.Class = "lane held"
		}
		if l.Place != TheProcess || d.alive {
			shapes = append(shapes, s)
		}
	}
	return shapes
}

// arrow draws an arrow between lanes.
func (d *drawing) arrow(e Entry) []shape {
	switch {
	case e.From == (Place{}):
		return []shape{{Class: "across " + string(e.Mark), X1: 0, X2: 100, Y1: middle, Y2: middle}}
	case e.News == Repeating, e.Turn != 0 && e.To == (Place{}):
		return nil
	case e.To == (Place{}):
		return []shape{{Class: "arrow", X1: d.at[e.From], Y1: middle, Symbol: "ring"}}
	case e.News == CatchingUp:
		return []shape{{Class: "arrow", X1: d.at[e.To], Y1: middle, Symbol: "ring"}}
	}
	from, to := d.at[e.From], d.at[e.To]
	// An arrow that does not arrive ends between two lanes, so that it does not seem to arrive at another lane.
	half := math.Copysign(50/float64(len(d.Lanes)), to-from)
	soon, almost := tenth(from+half), tenth(to-half)
	class := "arrow " + string(e.Mark)
	switch {
	case e.News != 0, e.Fault == inject.HandOver, e.From == TheProcess && e.Mark == StaleMark && e.To == TheServer:
		class += " event"
	case d.effect(e) || e.To == TheOutside && e.Weight >= Write:
		class += " effect"
	}
	line := func(to float64) shape { return shape{Class: class, X1: from, X2: to, Y1: middle, Y2: middle} }
	end := func(symbol string, x float64) shape { return shape{Class: class, X1: x, Y1: middle, Symbol: symbol} }
	head := "right"
	if to < from {
		head = "left"
	}
	switch {
	case e.Fault == inject.CrashBefore:
		return []shape{line(soon), end("cross", soon)}
	case e.Fault == inject.TimeoutLost, e.News == Holding:
		return []shape{line(almost), end("cross", almost)}
	case e.Fault == inject.HandOver:
		return []shape{line(almost)}
	case e.Fault == inject.TimeoutApplied, e.Fault == inject.CrashAfter:
		return []shape{
			line(to), end(head, to),
			{Class: "arrow event fault", X1: to, X2: soon, Y1: later, Y2: later},
			{Class: "arrow fault", X1: soon, Y1: later, Symbol: "cross"},
		}
	case e.Failed && e.To.Role != CacheRole:
		return []shape{line(to), end("cross", to)}
	}
	return []shape{line(to), end(head, to)}
}

// effect reports whether an entry has changed something in the API server.
func (d *drawing) effect(e Entry) bool { return e.To == TheServer && e.Version > d.version }

// signs draws marks and versions, on the side where no arrow arrives.
func (d *drawing) signs(e Entry) []shape {
	var shapes []shape
	version := ""
	if position, ok := strings.CutPrefix(e.Cache, "cache"); ok && e.To.Role == CacheRole {
		version = position
	} else if d.effect(e) {
		version = "v" + strconv.FormatInt(e.Version, 10)
	}
	if version != "" {
		s := shape{Class: "version " + string(e.Mark), X1: d.at[e.To], Shift: 12, Text: version}
		if d.at[e.From] > d.at[e.To] {
			s.Class, s.Shift = s.Class+" before", -12
		}
		shapes = append(shapes, s)
	}
	switch {
	case e.Turn == Dying:
		shapes = append(shapes, shape{Class: "arrow fault", X1: d.at[TheProcess], Y1: closes, Symbol: "cross"})
	case e.Turn == Ending && e.Failed:
		shapes = append(shapes, shape{
			Class: "arrow", X1: d.at[TheProcess], Y1: middle, Shift: blockWidth + 2, Symbol: "cross",
		})
	case e.Turn == Starting:
		text := "process " + strconv.Itoa(e.Process)
		if e.Program != "" {
			text += ", " + e.Program
		}
		shapes = append(shapes, shape{Class: "arrow", X1: d.at[TheProcess], Y1: middle, Symbol: "ring"},
			shape{Class: "version", X1: d.at[TheProcess], Shift: 12, Text: text})
	}
	if e.Mark == "" {
		return shapes
	}
	sign := shape{Class: "sign " + string(e.Mark), X1: d.at[e.From], Y1: middle, Symbol: string(e.Mark)}
	switch {
	case e.From == (Place{}):
		sign.X1 = d.at[TheServer]
	case e.To.Role == CacheRole:
		sign.X1 = d.at[e.To]
	case e.From == TheProcess && e.To == TheOutside:
		sign.Shift = blockWidth + 4
	case e.From == TheProcess:
		sign.Shift = -blockWidth - 4
	}
	return append(shapes, sign)
}
