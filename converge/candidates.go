// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"slices"
)

func candidatesOf(points []injectionPoint) []deviation {
	found, _ := candidates(points)
	return found
}

// candidates lists the faults at points, without those that are equivalent to another one: a crash before a request is
// equivalent to one after the last write before it, and a lost response to a write without an effect is equivalent to a
// lost request. It also counts all of them.
func candidates(points []injectionPoint) (found []deviation, enumerated int) {
	type end struct {
		version int64
		step    int
	}
	ends := map[end]bool{}
	for _, m := range points {
		for _, fault := range m.faults.faults() {
			enumerated++
			switch fault {
			case FaultCrashBefore, FaultCrashAfter:
				at := end{m.version, m.step}
				if fault == FaultCrashAfter {
					at.version = m.after
				}
				if ends[at] {
					continue
				}
				ends[at] = true
			case FaultTimeoutApplied:
				if m.after == m.version && m.faults.has(FaultTimeoutLost) {
					continue
				}
			}
			found = append(found, deviation{m.point, fault})
		}
	}
	// A bug most often shows at the first occurrence of a request or an event. Among these, faults that find the most bugs
	// come first.
	rounds := roundsOf(found)
	slices.SortStableFunc(found, func(a, b deviation) int {
		return cmp.Or(cmp.Compare(rounds(a), rounds(b)), cmp.Compare(a.fault.row().rank, b.fault.row().rank))
	})
	return found, enumerated
}

// The rounds of a search.
const (
	firstOfKind   = iota // the first point with an action and a kind, for each fault
	firstOfObject        // the first point with an action and an object
	repeated             // all others
	roundCount
)

// roundsOf returns the round in which a fault at a point is tried, from the order of the points.
func roundsOf(found []deviation) func(deviation) int {
	type group struct {
		fault     Fault
		act, kind string
	}
	first := map[group]point{}
	for _, d := range found {
		g := group{d.fault, d.act, d.kind}
		if _, ok := first[g]; !ok {
			first[g] = d.point
		}
	}
	return func(d deviation) int {
		switch {
		case first[group{d.fault, d.act, d.kind}] == d.point:
			return firstOfKind
		case d.n == 1:
			return firstOfObject
		}
		return repeated
	}
}

// sampled returns at most a number of items: all of the first rounds, and of the next round items that are evenly
// spread. Without rounds, all items are evenly spread.
func sampled[T any](items []T, most int, round func(T) int) []T {
	if most >= len(items) {
		return items
	}
	chosen := make([]T, 0, most)
	for r := range roundCount {
		var group []T
		for _, item := range items {
			if round == nil && r == 0 || round != nil && round(item) == r {
				group = append(group, item)
			}
		}
		room := min(len(group), most-len(chosen))
		for n := range room {
			chosen = append(chosen, group[n*len(group)/room])
		}
	}
	return chosen
}
