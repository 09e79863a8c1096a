// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/sim"
	"trueup.dev/converge/internal/state"
)

// usual and other are two runs without faults. What differs between them depends on time, versions, UIDs or chance.
func (p *plan) usual() sim.Variation { return sim.Variation{Seed: p.seed, ProbesRoles: p.probesRoles} }

func (p *plan) other() sim.Variation {
	return sim.Variation{Seed: p.seed + 1, Delay: 26*time.Hour + 17*time.Minute + 13*time.Second, Versions: 7, Twice: true}
}

// repetitions are further runs without faults, which are executed before a difference is reported. Most have equal
// UIDs.
func (p *plan) repetitions() []sim.Variation {
	var found []sim.Variation
	for n := range 10 {
		// The delays differ in all units from milliseconds to months.
		delay := 29*time.Hour + 7*time.Minute + 11*time.Second + 137*time.Millisecond
		v := sim.Variation{Seed: p.seed, Delay: time.Duration(n*n) * delay, Versions: n}
		if n%4 == 3 {
			v.Seed += uint64(n)
		}
		found = append(found, v)
	}
	return found
}

// recordsReference reports whether the present run is one without faults, whose outcome others are compared with.
func (p *plan) recordsReference() bool { return p.reference == nil }

// refer executes the runs without faults. It returns the first of them that fails, or the usual one and true.
func (p *plan) refer(t *testing.T) (judge.Outcome, bool) {
	if p.upgrade != nil {
		return p.referVersions(t)
	}
	p.reference, p.random = nil, state.RandomNames{}
	var first judge.Outcome
	p.findRead(func() judge.Outcome {
		p.probesRoles = true
		first = p.execute(t, nil, p.usual(), nil)
		return first
	})
	if v, failed := first.First(); failed && v.Cause == CauseForbidden {
		return first, false // the same run is shown, so that it is still a probe
	}
	p.probesRoles = false
	p.waits = false
	one := p.execute(t, nil, p.usual(), nil)
	for p.random.Find(first.Settled, one.Settled) { // names that contain random ones are found next
		first, one = p.execute(t, nil, p.usual(), nil), p.execute(t, nil, p.usual(), nil)
	}
	if len(one.Violations) > 0 {
		return one, false
	}
	other := p.execute(t, nil, p.other(), nil)
	if len(other.Violations) > 0 {
		return other, false
	}
	slow, reverse := p.usual(), p.usual()
	slow.Slow, reverse.Slow, reverse.Reverse = true, true, true
	if p.waits = judge.ReadyMeansAvailable(p.execute(t, nil, slow, nil)) &&
		judge.ReadyMeansAvailable(p.execute(t, nil, reverse, nil)); p.waits {
		// The status oracle needs to know that Ready means available.
		if one = p.execute(t, nil, p.usual(), nil); len(one.Violations) > 0 {
			return one, false
		}
	}
	r := judge.NewReference(one)
	p.reader().AddDiffering(r.Masked, one.Settled, other.Settled)
	for step, s := range p.Steps[:len(p.Steps)-1] {
		if s.plain.Settle {
			p.skip(t, r, []int{step})
		}
	}
	for i := range r.Points {
		if m := &r.Points[i]; r.Without([]int{m.Step}) == nil {
			m.Faults &^= inject.SetOf(FaultMeanwhile)
		}
	}
	p.reference = r
	return r.Outcome, true
}

// findRead finds, with a run, which kinds each program reads from caches.
func (p *plan) findRead(execute func() judge.Outcome) {
	for _, program := range p.programs {
		delete(p.read, program)
	}
	for i, last := range execute().Processes {
		p.read[p.programs[i]] = last.Read
	}
}

// skip executes the run without faults in which users do not wait for some Settles.
func (p *plan) skip(t *testing.T, r *judge.Reference, steps []int) {
	v := p.usual()
	v.Skip = steps
	o := p.executeAlone(t, v)
	violation, failed := o.First()
	if !failed {
		r.Skipping[judge.SkipKey(steps)] = &judge.Baseline{Outcome: o, Steps: steps}
		return
	}
	r.Skipping[judge.SkipKey(steps)] = nil
	where := fmt.Sprintf("step %d, %s", steps[0]+1, p.Steps[steps[0]].plain.Name)
	for _, step := range steps[1:] {
		where += fmt.Sprintf(", or step %d, %s", step+1, p.Steps[step].plain.Name)
	}
	r.MustSettle = append(r.MustSettle, fmt.Sprintf(
		"users always wait at %s: otherwise the run without faults fails: %s", where, violation,
	))
}

// executeAlone executes a run without faults that is not compared with others.
func (p *plan) executeAlone(t *testing.T, v sim.Variation) judge.Outcome {
	alone := *p
	alone.reference = nil
	return alone.execute(t, nil, v, nil)
}

// try executes a schedule. Runs without faults are expensive compared with what most schedules need, so only some are
// executed at first. If the schedule fails, the others are executed, and it is executed again.
func (p *plan) try(t *testing.T, s inject.Schedule, log *explain.Timeline) judge.Outcome {
	defer p.forgetInterference()
	for {
		o := p.execute(t, s, p.usual(), log)
		if !p.learn(t, &o) && !p.interfere(t, s, &o) {
			if p.dueToMark(t, s, &o) {
				o.Violations = nil
			}
			return o
		}
		if log != nil {
			*log = explain.Timeline{}
		}
	}
}

// dueToMark reports whether a state only differs because an object has the annotation of the other client: an operator
// may compute names or values from all annotations.
func (p *plan) dueToMark(t *testing.T, s inject.Schedule, o *judge.Outcome) bool {
	violation, failed := o.First()
	if !failed || !violation.Compares() || !s.Has(FaultConflict) {
		return false
	}
	v := p.usual()
	v.Unmarked = true
	unmarked := p.execute(t, s, v, nil)
	return len(unmarked.Violations) == 0
}

// learn executes the runs without faults that a failed run must be compared with, unless they are known, and reports
// whether it has executed any. A run is not judged if one without faults fails in which users skip the same Settles.
func (p *plan) learn(t *testing.T, o *judge.Outcome) bool {
	violation, failed := o.First()
	if !failed || p.reference == nil {
		return false
	}
	learned := false
	for _, version := range p.alone() {
		if len(o.Skipped) > 1 {
			b, known := version.reference.Skipping[judge.SkipKey(o.Skipped)]
			switch {
			case !known:
				version.skip(t, version.reference, slices.Clone(o.Skipped))
				learned = true
			case b == nil:
				o.Violations = nil
				return false
			}
		}
		if !violation.Compares() {
			continue
		}
		for _, b := range version.reference.Baselines(o.Skipped) {
			if !b.Repeated {
				version.repeat(t, b)
				learned = true
			}
		}
	}
	return learned
}

// interfere executes the runs in which another client deletes the same objects as in a failed run, without other
// faults, and users do not wait for the controller to restore them where they did not wait in the failed run: they may
// have deleted what it needs for that. It reports whether it has executed any.
func (p *plan) interfere(t *testing.T, s inject.Schedule, o *judge.Outcome) bool {
	deletions := slices.DeleteFunc(slices.Clone(s), func(d inject.Deviation) bool {
		return d.Fault != FaultDeleted && d.Fault != FaultChildDeleted
	})
	v, failed := o.First()
	if !failed || !v.Compares() || p.reference == nil || len(o.Skipped) == 0 || len(deletions) == 0 {
		return false
	}
	executed := false
	for _, version := range p.alone() {
		r := version.reference
		if r.Interfered != nil {
			continue
		}
		executed = true
		r.Interfered = &r.Baseline
		variation := version.usual()
		variation.Hurry = slices.Clone(o.Skipped)
		alone := *version
		alone.reference = nil
		if o := alone.execute(t, deletions, variation, nil); len(o.Violations) == 0 {
			r.Interfered = &judge.Baseline{Outcome: o}
		}
	}
	return executed
}

// forgetInterference forgets the runs of interfere, which are for one schedule.
func (p *plan) forgetInterference() {
	for _, version := range p.alone() {
		if version.reference != nil {
			version.reference.Interfered = nil
		}
	}
}

// canSkip reports whether users need not wait at a Settle.
func (p *plan) canSkip(step int) bool {
	for _, version := range p.alone() {
		if version.reference.Without([]int{step}) == nil {
			return false
		}
	}
	return true
}

// repeat repeats a run without faults, to find out what differs each time, and what the process creates and deletes if
// the garbage collector is slow. It does not vary the order of other actors: a result that depends on that is a
// failure.
func (p *plan) repeat(t *testing.T, b *judge.Baseline) {
	b.Repeated = true
	for _, v := range append(p.repetitions(), p.other(), sim.Variation{Seed: p.seed, LateGarbage: true}) {
		v.Skip = b.Steps
		o := p.executeAlone(t, v)
		if len(o.Violations) > 0 {
			continue
		}
		b.Ledger.Raise(o.Ledger)
		if v.LateGarbage {
			continue
		}
		p.reader().AddDiffering(p.reference.Masked, b.Settled, o.Settled)
		if v.Seed == p.seed {
			p.findUnstable(b.Settled, o.Settled)
		}
	}
}

// findUnstable finds the objects that only one of two runs with equal UIDs has.
func (p *plan) findUnstable(a, b []*state.Snapshot) {
	for i := range min(len(a), len(b)) {
		if state.Alike(a[i], b[i]) {
			continue
		}
		one, other := p.reader().Flatten(a[i]), p.reader().Flatten(b[i])
		for _, pair := range [][2]map[string]*state.FlatObject{{one, other}, {other, one}} {
			for _, name := range phrase.SortedKeys(pair[0]) {
				kind, _, _ := strings.Cut(name, " ")
				if pair[1][name] == nil && p.reference.Unstable[kind] == "" {
					p.reference.Unstable[kind] = fmt.Sprintf(
						"of two runs without faults, only one has %s at Settle %d", name, i+1,
					)
				}
			}
		}
	}
}
