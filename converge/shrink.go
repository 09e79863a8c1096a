// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"testing"
)

// shrink looks for the fewest and simplest faults that violate the same.
func (p *plan) shrink(t *testing.T, f *Failure) {
	fails := func(s schedule) bool {
		o := p.execute(t, s, p.usual(), nil)
		f.Shrinks++
		v, ok := o.violation()
		if !ok || v.Oracle != f.Violation.Oracle || v.About != f.Violation.About {
			return false
		}
		f.Violation = v
		return true
	}
	for before := -1; before != len(f.schedule); {
		before = len(f.schedule)
		drop(f, fails)
		simplify(f, fails)
	}
}

// drop leaves out the faults that it does not take.
func drop(f *Failure, fails func(schedule) bool) {
	for i := 0; i < len(f.schedule); {
		if shorter := slices.Delete(slices.Clone(f.schedule), i, i+1); fails(shorter) {
			f.schedule = shorter
		} else {
			i++
		}
	}
}

// simplify has simpler faults, or the same ones earlier, where that fails as well.
func simplify(f *Failure, fails func(schedule) bool) {
	for i := range f.schedule {
		for _, fault := range f.schedule[i].fault.row().simpler {
			easier := slices.Clone(f.schedule)
			if easier[i].fault = fault; fails(easier) {
				f.schedule = easier
				break
			}
		}
		for n := 1; n < f.schedule[i].n; n++ {
			earlier := slices.Clone(f.schedule)
			if earlier[i].n = n; fails(earlier) {
				f.schedule = earlier
				break
			}
		}
	}
}

// tell makes the run of a failure once more, for its timeline.
func (p *plan) tell(t *testing.T, f *Failure) {
	log := &timeline{}
	o := p.execute(t, f.schedule, p.usual(), log)
	f.entries, f.arrivals, f.hits = log.entries, log.arrivals, log.hits
	if v, ok := o.violation(); ok {
		f.Violation = v
	}
	p.explain(t, f)
}

// explain fills in what is known of a failure whose run is over.
func (p *plan) explain(t *testing.T, f *Failure) {
	f.test, f.leftOut = t.Name(), p.leftOut()
	for _, d := range f.schedule {
		f.Faults = append(f.Faults, d.String())
	}
	f.Replay = f.schedule.encode(p.seed)
	f.Hint = hint(f)
}
