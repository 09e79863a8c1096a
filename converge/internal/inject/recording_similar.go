// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"
)

// MaxSimilar limits the schedules that are similar to the schedule of a recording.
const MaxSimilar = 1000

// lookAlike are the faults that a controller cannot tell from another one, or whose consequences are like the
// consequences of the other one.
var lookAlike = map[Fault][]Fault{
	TimeoutApplied: {TimeoutLost, CrashAfter},
	TimeoutLost:    {TimeoutApplied, CrashAfter},
	ServerError:    {TimeoutApplied},
	LagReconcile:   {LagLong, LagRead, Relist},
	LagLong:        {LagReconcile, LagRead, Relist},
	Conflict:       {Recreated},
	Exists:         {Taken},
	Deleted:        {Recreated},
}

// Similar returns schedules like the one of the recording, the most similar ones first.
func (r *Recorded) Similar(points []Injectable) []Schedule {
	var found []Schedule
	seen := map[string]bool{r.Schedule.Encode(0): true}
	add := func(s Schedule) {
		if key := s.Encode(0); !seen[key] && len(s) > 0 && len(found) < MaxSimilar {
			seen[key] = true
			found = append(found, s)
		}
	}
	for _, d := range r.Schedule {
		add(Schedule{d})
	}
	var others []Deviation
	for i, d := range r.Schedule {
		for _, other := range alternatives(d) {
			replaced := slices.Clone(r.Schedule)
			replaced[i] = other
			add(replaced)
			others = append(others, other)
		}
	}
	for _, d := range append(others, r.lagsOfConflicts()...) {
		add(Schedule{d})
	}
	if r.restarted {
		for _, d := range CandidatesOf(points) {
			if slices.Contains([]Fault{CrashAfter, CrashBefore, HandOver, Restart}, d.Fault) {
				add(Schedule{d})
			}
		}
	}
	return found
}

// alternatives returns the deviations that are most similar to one: the fault at the repetitions next to it, and the
// faults that look alike.
func alternatives(d Deviation) []Deviation {
	var found []Deviation
	for _, by := range []int{0, -1, 1, -2, 2} {
		for _, fault := range append([]Fault{d.Fault}, lookAlike[d.Fault]...) {
			other := d
			if other.Fault, other.N = fault, d.N+by; other.N > 0 && other != d {
				found = append(found, other)
			}
		}
	}
	return found
}

// lagsOfConflicts returns delays of events of the objects whose writes had conflicts: a cache without the last version
// leads to these, too.
func (r *Recorded) lagsOfConflicts() []Deviation {
	var found []Deviation
	for _, d := range r.Schedule {
		if d.Fault != Conflict && d.Fault != Exists && d.Fault != Deleted {
			continue
		}
		kind, _, _ := strings.Cut(d.Kind, "/")
		for _, act := range []string{"event modified", "event added", "event deleted"} {
			for n := 1; n <= 3; n++ {
				at := Site{Program: d.Program, Act: act, Kind: kind, Key: d.Key}
				found = append(found, Deviation{Point{at, n}, LagReconcile}, Deviation{Point{at, n}, LagLong})
			}
		}
	}
	return found
}
