// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"slices"
)

// CandidatesOf lists the faults at points, see [Candidates].
func CandidatesOf(points []Injectable) []Deviation {
	found, _ := Candidates(points)
	return found
}

// Candidates lists the faults at points, without those that are equivalent to another one: a crash before a request is
// equivalent to one after the last write before it, and a lost response to a write without an effect is equivalent to a
// lost request. It also counts all of them.
func Candidates(points []Injectable) (found []Deviation, enumerated int) {
	type end struct {
		version int64
		step    int
	}
	ends := map[end]bool{}
	for _, m := range points {
		for _, fault := range m.Faults.Faults() {
			enumerated++
			switch fault {
			case CrashBefore, CrashAfter:
				at := end{m.Version, m.Step}
				if fault == CrashAfter {
					at.version = m.After
				}
				if ends[at] {
					continue
				}
				ends[at] = true
			case TimeoutApplied:
				if m.After == m.Version && m.Faults.Has(TimeoutLost) {
					continue
				}
			}
			found = append(found, Deviation{m.Point, fault})
		}
	}
	// A bug most often shows at the first occurrence of a request or an event. Among these, faults that find the most bugs
	// come first.
	rounds := RoundsOf(found)
	slices.SortStableFunc(found, func(a, b Deviation) int {
		return cmp.Or(cmp.Compare(rounds(a), rounds(b)), cmp.Compare(a.Fault.Row().rank, b.Fault.Row().rank))
	})
	return found, enumerated
}

// The rounds of a search.
const (
	FirstOfKind   = iota // the first point with an action and a kind, for each fault
	firstOfObject        // the first point with an action and an object
	Repeated             // all others
)

// RoundsOf returns the round in which a fault at a point is tried, from the order of the points.
func RoundsOf(found []Deviation) func(Deviation) int {
	type group struct {
		fault     Fault
		act, kind string
	}
	first := map[group]Point{}
	for _, d := range found {
		g := group{d.Fault, d.Act, d.Kind}
		if _, ok := first[g]; !ok {
			first[g] = d.Point
		}
	}
	return func(d Deviation) int {
		switch {
		case first[group{d.Fault, d.Act, d.Kind}] == d.Point:
			return FirstOfKind
		case d.N == 1:
			return firstOfObject
		}
		return Repeated
	}
}
