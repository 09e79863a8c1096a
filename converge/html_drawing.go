// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// drawing has a lane for everybody who takes part, and time goes downwards. Each row is drawn for itself, from its top to its bottom, so that rows can be
// hidden and can grow.
type drawing struct {
	Lanes []lane
	at    map[place]float64

	// What follows is how things stand between two rows.
	alive bool
	open  []block
	// held are the caches whose watch is late.
	held    map[place]bool
	version int64
}

// lane is a column.
type lane struct {
	place

	// Title is above Name.
	Title, Name string
}

// block is a reconcile that goes on.
type block struct {
	who  string
	slot int
}

// shape is a part of what a row shows: a line, a symbol or a text. X are percents of the width, and Y pixels from the top, or "100%".
type shape struct {
	Class  string
	X1, X2 float64
	Y1, Y2 string
	// Shift is to the right, in pixels.
	Shift  int
	Symbol string
	Text   string
}

// The heights in a row: what happens is at middle, and what comes back a little later.
const (
	top, middle, after, bottom = "0", "15", "24", "100%"
)

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
		d.at[l.place] = (float64(i) + 0.5) * 100 / float64(len(d.Lanes))
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

// row draws what happens in an entry, and remembers what comes of it.
func (d *drawing) row(e entry) []shape {
	var moving []block
	switch e.turn {
	case beginning:
		moving = []block{{e.who, d.slot()}}
		d.open = append(d.open, moving...)
	case ending:
		moving = slices.DeleteFunc(slices.Clone(d.open), func(b block) bool { return b.who != e.who })
	case dying:
		moving = d.open
	case starting:
	}
	shapes := d.lanes(e.turn)
	shapes = append(shapes, d.arrow(e)...)
	for _, b := range d.open {
		y1, y2 := top, bottom
		if slices.Contains(moving, b) {
			if e.turn == beginning {
				y1 = middle
			} else {
				y2 = middle
			}
		}
		shapes = append(shapes, d.blockShapes(b, y1, y2, e.who == b.who)...)
	}
	shapes = append(shapes, d.symbols(e)...)
	if e.turn == ending || e.turn == dying {
		d.open = slices.DeleteFunc(d.open, func(b block) bool { return slices.Contains(moving, b) })
	}
	switch {
	case e.turn == dying:
		d.alive = false
		clear(d.held)
	case e.turn == starting:
		d.alive = true
	case e.who == "watch" && e.fault != "":
		d.held[e.to] = e.fault != Resync
	case e.who == "watch" && e.cache == "":
		delete(d.held, e.to)
	}
	d.version = max(d.version, e.version)
	return shapes
}

// gap draws a row that stands for some that are not shown.
func (d *drawing) gap() []shape {
	shapes := d.lanes(0)
	for _, b := range d.open {
		shapes = append(shapes, d.blockShapes(b, top, bottom, false)...)
	}
	return shapes
}

// slot is the first one that no reconcile has.
func (d *drawing) slot() int {
	for slot := 0; ; slot++ {
		if !slices.ContainsFunc(d.open, func(b block) bool { return b.slot == slot }) {
			return slot
		}
	}
}

func (d *drawing) blockShapes(b block, y1, y2 string, named bool) []shape {
	const width = 14
	x := d.at[theProcess]
	shapes := []shape{{Class: "block", X1: x, X2: x, Y1: y1, Y2: y2, Shift: b.slot * width}}
	if number, ok := strings.CutPrefix(b.who, "reconcile "); ok && named {
		shapes = append(shapes, shape{Class: "number", X1: x, Shift: b.slot * width, Text: number})
	}
	return shapes
}

// lanes draws the line of each lane.
func (d *drawing) lanes(turn turn) []shape {
	shapes := make([]shape, 0, len(d.Lanes))
	for _, l := range d.Lanes {
		s := shape{Class: "lane", X1: d.at[l.place], X2: d.at[l.place], Y1: top, Y2: bottom}
		switch {
		case d.held[l.place]:
			s.Class = "lane held"
		case l.place == theProcess && turn == dying:
			s.Y2 = middle
		case l.place == theProcess && turn == starting:
			s.Y1 = middle
		case l.place == theProcess && !d.alive:
			continue
		}
		shapes = append(shapes, s)
	}
	return shapes
}

// arrow draws what goes from one lane to another one.
func (d *drawing) arrow(e entry) []shape {
	if e.from == (place{}) {
		return []shape{{Class: "across " + string(e.mark), X1: 0, X2: 100, Y1: middle, Y2: middle}}
	}
	if e.to == (place{}) || e.who == "watch" && (e.fault == Resync || e.fault == "" && e.cache == "") {
		return nil
	}
	from, to := d.at[e.from], d.at[e.to]
	part := func(share float64) float64 { return from + share*(to-from) }
	class := "arrow " + string(e.mark)
	switch {
	case e.who == "watch" || e.fault == HandOver:
		class += " event"
	case e.version > d.version || e.to == theOutside && e.weight >= write:
		class += " effect"
	}
	line := func(to float64) shape { return shape{Class: class, X1: from, X2: to, Y1: middle, Y2: middle} }
	end := func(symbol string, x float64) shape { return shape{Class: class, X1: x, Y1: middle, Symbol: symbol} }
	head := "right"
	if to < from {
		head = "left"
	}
	switch {
	case e.fault == CrashBefore:
		return []shape{line(part(0.3)), end("cross", part(0.3))}
	case e.fault == TimeoutLost, e.who == "watch" && e.fault != "":
		return []shape{line(part(0.5)), end("cross", part(0.5))}
	case e.fault == HandOver:
		return []shape{line(part(0.7))}
	case e.fault == TimeoutApplied, e.fault == CrashAfter:
		back := shape{Class: "arrow event fault", X1: to, X2: part(0.5), Y1: after, Y2: after}
		return []shape{line(to), end(head, to), back, {Class: "arrow fault", X1: part(0.5), Y1: after, Symbol: "cross"}}
	case e.failed && e.to.role != cacheRole:
		return []shape{line(to), end("cross", to)}
	}
	return []shape{line(to), end(head, to)}
}

// symbols draws what is special about an entry, and the versions.
func (d *drawing) symbols(e entry) []shape {
	var shapes []shape
	if version, ok := strings.CutPrefix(e.cache, "cache@"); ok && e.to.role == cacheRole {
		shapes = append(shapes, shape{Class: "version " + string(e.mark), X1: d.at[e.to], Text: version})
	}
	if e.version > d.version && e.to == theServer {
		shapes = append(shapes, shape{Class: "version", X1: d.at[e.to], Text: strconv.FormatInt(e.version, 10)})
	}
	if e.mark == "" {
		return shapes
	}
	x := 0.0
	switch {
	case e.from == (place{}):
		x = d.at[theServer]
	case e.mark == staleMark && e.to.role == cacheRole, e.who == "watch":
		x = d.at[e.to]
	default:
		x = d.at[e.from]
	}
	shift := 0
	if x == d.at[theProcess] && e.turn != dying {
		shift = -18 // beside the block
	}
	return append(shapes, shape{Class: "sign " + string(e.mark), X1: x, Y1: middle, Shift: shift, Symbol: string(e.mark)})
}
