// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"testing"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/search"
)

// shrink finds the fewest and simplest faults that cause the same violation.
func (p *plan) shrink(t *testing.T, f *Failure) {
	fails := func(s inject.Schedule) bool {
		o := p.try(t, s, nil)
		f.Shrinks++
		v, ok := o.First()
		if !ok || v.Oracle != f.Violation.Oracle || v.About != f.Violation.About {
			return false
		}
		f.Violation = Violation(v)
		return true
	}
	search.Shrink(func() int { return len(f.schedule) }, func() { drop(f, fails) }, func() { simplify(f, fails) })
}

// drop removes the faults that are not needed.
func drop(f *Failure, fails func(inject.Schedule) bool) {
	for i := 0; i < len(f.schedule); {
		if shorter := slices.Delete(slices.Clone(f.schedule), i, i+1); fails(shorter) {
			f.schedule = shorter
		} else {
			i++
		}
	}
}

// simplify replaces faults by simpler ones, or by the same ones earlier, if the failure remains.
func simplify(f *Failure, fails func(inject.Schedule) bool) {
	for i := range f.schedule {
		for _, fault := range f.schedule[i].Fault.Row().Simpler {
			easier := slices.Clone(f.schedule)
			if easier[i].Fault = fault; fails(easier) {
				f.schedule = easier
				break
			}
		}
		for n := 1; n < f.schedule[i].N; n++ {
			earlier := slices.Clone(f.schedule)
			if earlier[i].N = n; fails(earlier) {
				f.schedule = earlier
				break
			}
		}
	}
}

// record runs the schedule of a failure again, for its timeline.
func (p *plan) record(t *testing.T, f *Failure) {
	log := &explain.Timeline{}
	o := p.try(t, f.schedule, log)
	f.log = log.Log
	if v, ok := o.First(); ok {
		f.Violation = Violation(v)
	}
	p.explain(t, f)
}

// explain fills in the description of a failure.
func (p *plan) explain(t *testing.T, f *Failure) {
	f.test, f.leftOut = t.Name(), p.leftOut()
	for _, d := range f.schedule {
		f.Faults = append(f.Faults, d.String())
	}
	f.Replay = p.encode(f.schedule)
	if p.upgrade != nil {
		p.explainUpgrade(t, f)
		return
	}
	f.explainMistake()
}
