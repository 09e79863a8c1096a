// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/search"
)

// exploration is the search for a schedule with a violation.
type exploration struct {
	plan    *plan
	t       *testing.T
	options Options
	begin   time.Time
	// lastProgress is when progress was last printed.
	lastProgress time.Time
	// combinationsStarted is when the search for failures of several faults began.
	combinationsStarted time.Time
	// afterFaults are the points that only exist after a fault, with that fault.
	afterFaults []recovery
	cert        Certificate
	seen        map[inject.Point]bool
}

// recovery is a second fault at a point that only exists after a first one.
type recovery struct {
	first  inject.Deviation
	second inject.Injectable
}

func newExploration(t *testing.T, p *plan, options Options) *exploration {
	now := time.Now()
	return &exploration{plan: p, t: t, options: options, begin: now, lastProgress: now, seen: map[inject.Point]bool{}}
}

// explore searches for a schedule with a violation, and returns the first one. The order, and so the result, depends on
// nothing but the scenario and the options, unless a budget ends the search.
func explore(t *testing.T, p *plan, options Options) *Report {
	defer search.Tune(t)()
	x := newExploration(t, p, options)
	x.cert.Seed, x.cert.Programs = options.Seed, len(p.programs)
	report := &Report{}
	defer func() {
		x.cert.Elapsed, x.cert.failed = time.Since(x.begin), report.Failure != nil
		x.cert.LeftOut = p.leftOut()
		if report.Failure == nil {
			x.cert.LeftOut = append(x.cert.LeftOut, p.neverDisturbed()...)
		}
		x.cert.Advice = append(x.cert.Advice, p.unusedRules()...)
		report.Certificate = x.cert
	}()
	reference, ok := p.refer(t)
	if !ok {
		report.Failure = &Failure{Violation: Violation(reference.Violations[0]), schedule: inject.Schedule{}}
		return report
	}
	x.cert.Reconciles = reference.Reconciles
	x.cert.Idle = reference.NoOps
	options.limit(p.length(&reference))
	x.options = options
	of := func(phase func(*judge.Outcome) *Failure) func() *Failure {
		return func() *Failure { return phase(&reference) }
	}
	report.Failure = search.First(of(x.recorded), of(x.singles), of(x.recoveries), of(x.pairs), of(x.swarm))
	return report
}

// length is the length of a run in requests. Starting controllers takes as long as twenty.
func (p *plan) length(reference *judge.Outcome) int {
	length := max(reference.Requests, 1)
	for _, program := range p.programs {
		if program.Setup != nil {
			length += 20
		}
	}
	return length
}

// try executes a schedule, and returns its outcome and its failure.
func (x *exploration) try(s inject.Schedule) (judge.Outcome, *Failure) {
	o := x.plan.try(x.t, s, nil)
	x.cert.Schedules++
	x.progress()
	for _, advice := range o.Advices {
		if !slices.Contains(x.cert.Advice, advice) {
			x.cert.Advice = append(x.cert.Advice, advice)
		}
	}
	if v, ok := o.First(); ok {
		return o, &Failure{Violation: Violation(v), schedule: s}
	}
	return o, nil
}

// progress prints the progress every ten seconds: a search with a budget may take hours.
func (x *exploration) progress() {
	if time.Since(x.lastProgress) < 10*time.Second {
		return
	}
	x.lastProgress = time.Now()
	fmt.Fprintf(
		os.Stderr, "%s: %d schedules in %s: %d single faults, %d second faults, %d pairs, %d random\n", x.t.Name(),
		x.cert.Schedules, time.Since(x.begin).Round(time.Second), x.cert.Singles, x.cert.Recoveries, x.cert.Pairs,
		x.cert.Random,
	)
}

// singles tries each fault at each point of the run without faults, or a sample of them if that would take too long.
func (x *exploration) singles(reference *judge.Outcome) *Failure {
	for _, m := range reference.Points {
		x.seen[m.Point] = true
	}
	x.cert.Points = len(reference.Points)
	singles, enumerated := inject.Candidates(reference.Points)
	x.cert.Enumerated, x.cert.Pruned = enumerated, enumerated-len(singles)
	tried := singles
	if most := x.mostSingles(); most > 0 {
		tried = search.Sample(singles, most, inject.RoundsOf(singles))
	}
	x.cert.SinglesLeft = len(singles) - len(tried)
	for _, d := range tried {
		o, failure := x.try(inject.Schedule{d})
		if failure != nil {
			return failure
		}
		x.cert.Singles++
		for _, m := range o.Points {
			if !x.seen[m.Point] {
				x.afterFaults = append(x.afterFaults, recovery{d, m})
			}
		}
	}
	return nil
}

// mostSingles is how many single faults are tried, or 0 for all.
func (x *exploration) mostSingles() int {
	if x.options.SingleRequests <= 0 {
		return 0
	}
	return max(x.options.SingleRequests/x.plan.length(&x.plan.reference.Outcome), fewest)
}

// recoveries tries the faults at the points that only exist after another one.
func (x *exploration) recoveries(*judge.Outcome) *Failure {
	x.combinationsStarted = time.Now()
	byFirst := map[inject.Deviation][]inject.Injectable{}
	var order []inject.Deviation
	for _, r := range x.afterFaults {
		if byFirst[r.first] == nil {
			order = append(order, r.first)
		}
		byFirst[r.first] = append(byFirst[r.first], r.second)
	}
	var candidates []inject.Schedule
	for _, first := range order {
		for _, second := range inject.CandidatesOf(byFirst[first]) {
			candidates = append(candidates, inject.Schedule{first, second})
		}
	}
	return x.secondFaults(candidates)
}

// secondFaults tries schedules with a second fault, or a sample of them.
func (x *exploration) secondFaults(candidates []inject.Schedule) *Failure {
	tried := candidates
	if x.options.Recoveries >= 0 {
		tried = search.Sample(candidates, x.options.Recoveries, nil)
	}
	failure := x.tryEach(slices.Values(tried), &x.cert.Recoveries)
	if failure == nil {
		x.cert.RecoveriesLeft = len(candidates) - x.cert.Recoveries
	}
	return failure
}

// tryEach tries schedules, as far as the budget allows, and counts those without a failure.
func (x *exploration) tryEach(schedules iter.Seq[inject.Schedule], count *int) *Failure {
	return search.Each(schedules, x.outOfTime, func(s inject.Schedule) *Failure {
		_, failure := x.try(s)
		return failure
	}, count)
}

// pairs tries two faults at once: all pairs, if the options and the time allow it, or some. Pairs at points near each
// other come first, because one fault is more likely to affect the recovery from the other one there.
func (x *exploration) pairs(reference *judge.Outcome) *Failure {
	singles := inject.CandidatesOf(reference.Points)
	at := map[inject.Point]int{}
	for i, m := range reference.Points {
		at[m.Point] = i
	}
	apart := func(a, b int) int {
		distance := at[singles[a].Point] - at[singles[b].Point]
		return max(distance, -distance)
	}
	var near [][2]int
	distant := 0
	for a := range singles {
		for b := range a {
			switch distance := apart(a, b); {
			case distance > nearby:
				distant++
			case distance > 0:
				near = append(near, [2]int{b, a})
			}
		}
	}
	x.cert.PairsInAll = len(near) + distant
	random := rand.New(rand.NewPCG(x.options.Seed, 1))
	random.Shuffle(len(near), func(i, j int) { near[i], near[j] = near[j], near[i] })
	// A lost response and a late event of the same object are the usual reason for a second object.
	ofOneKind := func(pair [2]int) bool { return singles[pair[0]].IsAboutKindOf(singles[pair[1]].Site) }
	ofTwoKinds := slices.DeleteFunc(slices.Clone(near), ofOneKind)
	near = append(slices.DeleteFunc(near, func(pair [2]int) bool { return !ofOneKind(pair) }), ofTwoKinds...)
	if x.options.Pairs >= 0 {
		near = near[:min(len(near), x.options.Pairs*3/4)]
		distant = min(distant, x.options.Pairs-len(near))
	}
	next := search.Mixed(len(singles)*(len(singles)-1)/2, random)
	return x.tryEach(func(yield func(inject.Schedule) bool) {
		for _, pair := range near {
			if !yield(inject.Schedule{singles[pair[0]], singles[pair[1]]}) {
				return
			}
		}
		for distant > 0 {
			pair := search.PairOf(next())
			if apart(pair[0], pair[1]) <= nearby {
				continue
			}
			distant--
			if !yield(inject.Schedule{singles[pair[0]], singles[pair[1]]}) {
				return
			}
		}
	}, &x.cert.Pairs)
}

// nearby is the largest distance between two points near each other.
const nearby = 6

// swarm tries up to six faults at once, of some kinds at a time: a few kinds find more together than all kinds do.
func (x *exploration) swarm(reference *judge.Outcome) *Failure {
	points := slices.Clone(reference.Points)
	for _, r := range x.afterFaults {
		points = append(points, r.second)
	}
	if len(points) == 0 {
		return nil
	}
	return x.tryRandom(func(n uint64) inject.Schedule { return randomSchedule(points, x.options.Seed, n) })
}

// tryRandom tries random schedules, which their number determines.
func (x *exploration) tryRandom(numbered func(n uint64) inject.Schedule) *Failure {
	return x.tryEach(func(yield func(inject.Schedule) bool) {
		for n := range x.options.Random {
			if !yield(numbered(uint64(n))) {
				return
			}
		}
	}, &x.cert.Random)
}

func randomSchedule(points []inject.Injectable, seed, n uint64) inject.Schedule {
	random := rand.New(rand.NewPCG(seed, n<<8|2))
	kinds := inject.Set(random.Uint32() | random.Uint32())
	s := inject.Schedule{}
	for range 2 + random.IntN(5) {
		m := points[random.IntN(len(points))]
		faults := (m.Faults & kinds).Faults()
		if len(faults) == 0 || s.At(m.Point) != "" {
			continue
		}
		s = s.With(inject.Deviation{Point: m.Point, Fault: faults[random.IntN(len(faults))]})
	}
	return s
}

// outOfTime reports whether the budget is used up.
func (x *exploration) outOfTime() bool {
	return x.options.Budget > 0 && time.Since(x.combinationsStarted) > x.options.Budget
}

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
