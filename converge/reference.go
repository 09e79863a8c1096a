// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
)

// reference has the runs without faults, which other runs are compared to.
type reference struct {
	baseline

	// skipping are the runs in which users do not wait for some Settles, by the indexes of these. It is nil for Settles
	// that users must wait for.
	skipping map[string]*baseline
	// mustSettle describes the Settles that users must wait for, with the failure if they do not.
	mustSettle []string
	// masked are the fields that differ between runs without faults.
	masked map[string]bool
	// unstable describes objects that only some of several equal runs without faults have, by kind.
	unstable map[string]string
}

func newReference(o outcome) *reference {
	return &reference{
		baseline: baseline{outcome: o}, skipping: map[string]*baseline{}, masked: map[string]bool{},
		unstable: map[string]string{},
	}
}

// baseline is a run without faults.
type baseline struct {
	outcome

	// steps are the indexes of the Settles that users do not wait for.
	steps []int
	// repeated is set once the run was repeated to find out what differs each time.
	repeated bool
}

// usual and other are two runs without faults. What differs between them depends on time, versions, UIDs or chance.
func (p *plan) usual() variation { return variation{seed: p.seed, probesRoles: p.probesRoles} }

func (p *plan) other() variation {
	return variation{seed: p.seed + 1, delay: 26*time.Hour + 17*time.Minute + 13*time.Second, versions: 7, twice: true}
}

// repetitions are further runs without faults, which are executed before a difference is reported. Most have equal
// UIDs.
func (p *plan) repetitions() []variation {
	var found []variation
	for n := range 10 {
		// The delays differ in all units from milliseconds to months.
		delay := 29*time.Hour + 7*time.Minute + 11*time.Second + 137*time.Millisecond
		v := variation{seed: p.seed, delay: time.Duration(n*n) * delay, versions: n}
		if n%4 == 3 {
			v.seed += uint64(n)
		}
		found = append(found, v)
	}
	return found
}

// recordsReference reports whether the present run is one without faults, whose outcome others are compared with.
func (p *plan) recordsReference() bool { return p.reference == nil }

// refer executes the runs without faults. It returns the first of them that fails, or the usual one and true.
func (p *plan) refer(t *testing.T) (outcome, bool) {
	if p.upgrade != nil {
		return p.referVersions(t)
	}
	p.reference, p.random = nil, state.RandomNames{}
	var first outcome
	p.findRead(func() outcome {
		p.probesRoles = true
		first = p.execute(t, nil, p.usual(), nil)
		return first
	})
	if v, failed := first.violation(); failed && v.Cause == CauseForbidden {
		return first, false // the same run is shown, so that it is still a probe
	}
	p.probesRoles = false
	p.waits = false
	one := p.execute(t, nil, p.usual(), nil)
	for p.random.Find(first.settled, one.settled) { // names that contain random ones are found next
		first, one = p.execute(t, nil, p.usual(), nil), p.execute(t, nil, p.usual(), nil)
	}
	if len(one.violations) > 0 {
		return one, false
	}
	other := p.execute(t, nil, p.other(), nil)
	if len(other.violations) > 0 {
		return other, false
	}
	slow, reverse := p.usual(), p.usual()
	slow.slow, reverse.slow, reverse.reverse = true, true, true
	if p.waits = readyMeansAvailable(p.execute(t, nil, slow, nil)) &&
		readyMeansAvailable(p.execute(t, nil, reverse, nil)); p.waits {
		// The status oracle needs to know that Ready means available.
		if one = p.execute(t, nil, p.usual(), nil); len(one.violations) > 0 {
			return one, false
		}
	}
	r := newReference(one)
	p.reader().AddDiffering(r.masked, one.settled, other.settled)
	for step, s := range p.Steps[:len(p.Steps)-1] {
		if s.settle {
			p.skip(t, r, []int{step})
		}
	}
	for i := range r.points {
		if m := &r.points[i]; r.without([]int{m.Step}) == nil {
			m.Faults &^= inject.SetOf(FaultMeanwhile)
		}
	}
	p.reference = r
	return r.outcome, true
}

// findRead finds, with a run, which kinds each program reads from caches.
func (p *plan) findRead(execute func() outcome) {
	for _, program := range p.programs {
		delete(p.read, program)
	}
	for _, process := range execute().processes {
		for _, i := range process.informers {
			p.read[process.program] = append(p.read[process.program], i.kind)
		}
	}
}

// skip executes the run without faults in which users do not wait for some Settles.
func (p *plan) skip(t *testing.T, r *reference, steps []int) {
	v := p.usual()
	v.skip = steps
	o := p.executeAlone(t, v)
	violation, failed := o.violation()
	if !failed {
		r.skipping[skipKey(steps)] = &baseline{outcome: o, steps: steps}
		return
	}
	r.skipping[skipKey(steps)] = nil
	where := fmt.Sprintf("step %d, %s", steps[0]+1, p.Steps[steps[0]].name)
	for _, step := range steps[1:] {
		where += fmt.Sprintf(", or step %d, %s", step+1, p.Steps[step].name)
	}
	r.mustSettle = append(r.mustSettle, fmt.Sprintf(
		"users always wait at %s: otherwise the run without faults fails: %s", where, violation,
	))
}

// executeAlone executes a run without faults that is not compared with others.
func (p *plan) executeAlone(t *testing.T, v variation) outcome {
	alone := *p
	alone.reference = nil
	return alone.execute(t, nil, v, nil)
}

// skipKey returns the key of one or more steps. It is called for each request, and does not allocate for one step.
func skipKey(steps []int) string {
	key := strconv.Itoa(steps[0])
	for _, step := range steps[1:] {
		key += "," + strconv.Itoa(step)
	}
	return key
}

// without returns the run in which users do not wait for some Settles, or nil if they must.
func (r *reference) without(steps []int) *baseline { return r.skipping[skipKey(steps)] }

// baselines returns the runs that a run is compared with in which users have skipped Settles because of faults: the
// usual one, those that skip one of these, and the one that skips all. The reconciler may have handled some changes of
// the users, and not others.
func (r *reference) baselines(skipped []int) []*baseline {
	found := []*baseline{&r.baseline}
	for _, step := range skipped {
		if b := r.without([]int{step}); b != nil {
			found = append(found, b)
		}
	}
	if len(skipped) > 1 {
		if b := r.without(skipped); b != nil {
			found = append(found, b)
		}
	}
	return found
}

// try executes a schedule. Runs without faults are expensive compared with what most schedules need, so only some are
// executed at first. If the schedule fails, the others are executed, and it is executed again.
func (p *plan) try(t *testing.T, s inject.Schedule, log *timeline) outcome {
	for {
		o := p.execute(t, s, p.usual(), log)
		if !p.learn(t, &o) {
			if p.dueToMark(t, s, &o) {
				o.violations = nil
			}
			return o
		}
		if log != nil {
			*log = timeline{}
		}
	}
}

// dueToMark reports whether a state only differs because an object has the annotation of the other client: an operator
// may compute names or values from all annotations.
func (p *plan) dueToMark(t *testing.T, s inject.Schedule, o *outcome) bool {
	violation, failed := o.violation()
	if !failed || !violation.compares() || !s.Has(FaultConflict) {
		return false
	}
	v := p.usual()
	v.unmarked = true
	unmarked := p.execute(t, s, v, nil)
	return len(unmarked.violations) == 0
}

// learn executes the runs without faults that a failed run must be compared with, unless they are known, and reports
// whether it has executed any. A run is not judged if one without faults fails in which users skip the same Settles.
func (p *plan) learn(t *testing.T, o *outcome) bool {
	violation, failed := o.violation()
	if !failed || p.reference == nil {
		return false
	}
	learned := false
	for _, version := range p.alone() {
		if len(o.skipped) > 1 {
			b, known := version.reference.skipping[skipKey(o.skipped)]
			switch {
			case !known:
				version.skip(t, version.reference, slices.Clone(o.skipped))
				learned = true
			case b == nil:
				o.violations = nil
				return false
			}
		}
		if !violation.compares() {
			continue
		}
		for _, b := range version.reference.baselines(o.skipped) {
			if !b.repeated {
				version.repeat(t, b)
				learned = true
			}
		}
	}
	return learned
}

// canSkip reports whether users need not wait at a Settle.
func (p *plan) canSkip(step int) bool {
	for _, version := range p.alone() {
		if version.reference.without([]int{step}) == nil {
			return false
		}
	}
	return true
}

// repeat repeats a run without faults, to find out what differs each time, and what the process creates and deletes if
// the garbage collector is slow. It does not vary the order of other actors: a result that depends on that is a
// failure.
func (p *plan) repeat(t *testing.T, b *baseline) {
	b.repeated = true
	for _, v := range append(p.repetitions(), p.other(), variation{seed: p.seed, lateGarbage: true}) {
		v.skip = b.steps
		o := p.executeAlone(t, v)
		if len(o.violations) > 0 {
			continue
		}
		b.ledger.Raise(o.ledger)
		if v.lateGarbage {
			continue
		}
		p.reader().AddDiffering(p.reference.masked, b.settled, o.settled)
		if v.seed == p.seed {
			p.findUnstable(b.settled, o.settled)
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
				if pair[1][name] == nil && p.reference.unstable[kind] == "" {
					p.reference.unstable[kind] = fmt.Sprintf(
						"of two runs without faults, only one has %s at Settle %d", name, i+1,
					)
				}
			}
		}
	}
}

// compares reports whether a violation is a difference from the run without faults.
func (v Violation) compares() bool {
	switch v.Cause {
	case CauseMissing, CauseUnexpected, CauseDifferent, CauseDuplicate, CauseDeletedAgain, CauseCreatedAgain,
		CauseLiveAtOnce:
		return true
	}
	return false
}
