// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
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
	seen        map[point]bool
}

// recovery is a second fault at a point that only exists after a first one.
type recovery struct {
	first  deviation
	second injectionPoint
}

func newExploration(t *testing.T, p *plan, options Options) *exploration {
	now := time.Now()
	return &exploration{plan: p, t: t, options: options, begin: now, lastProgress: now, seen: map[point]bool{}}
}

// explore searches for a schedule with a violation, and returns the first one. The order, and so the result, depends on
// nothing but the scenario and the options, unless a budget ends the search.
func explore(t *testing.T, p *plan, options Options) *Report {
	defer tune(t)()
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
		report.Failure = &Failure{Violation: reference.violations[0], schedule: schedule{}}
		return report
	}
	x.cert.Reconciles = reference.reconciles
	x.cert.Idle = reference.noOps
	options.limit(p.length(&reference))
	x.options = options
	for _, phase := range []func(*outcome) *Failure{x.recorded, x.singles, x.recoveries, x.pairs, x.swarm} {
		if report.Failure = phase(&reference); report.Failure != nil {
			return report
		}
	}
	return report
}

// length is the length of a run in requests. Starting controllers takes as long as twenty.
func (p *plan) length(reference *outcome) int {
	length := max(reference.requests, 1)
	for _, program := range p.programs {
		if program.setup != nil {
			length += 20
		}
	}
	return length
}

// try executes a schedule, and returns its outcome and its failure.
func (x *exploration) try(s schedule) (outcome, *Failure) {
	o := x.plan.try(x.t, s, nil)
	x.cert.Schedules++
	x.progress()
	for _, advice := range o.advices {
		if !slices.Contains(x.cert.Advice, advice) {
			x.cert.Advice = append(x.cert.Advice, advice)
		}
	}
	if v, ok := o.violation(); ok {
		return o, &Failure{Violation: v, schedule: s}
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
func (x *exploration) singles(reference *outcome) *Failure {
	for _, m := range reference.points {
		x.seen[m.point] = true
	}
	x.cert.Points = len(reference.points)
	singles, enumerated := candidates(reference.points)
	x.cert.Enumerated, x.cert.Pruned = enumerated, enumerated-len(singles)
	tried := singles
	if most := x.mostSingles(); most > 0 {
		tried = sampled(singles, most, roundsOf(singles))
	}
	x.cert.SinglesLeft = len(singles) - len(tried)
	for _, d := range tried {
		o, failure := x.try(schedule{d})
		if failure != nil {
			return failure
		}
		x.cert.Singles++
		for _, m := range o.points {
			if !x.seen[m.point] {
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
	return max(x.options.SingleRequests/x.plan.length(&x.plan.reference.outcome), fewest)
}

// recoveries tries the faults at the points that only exist after another one.
func (x *exploration) recoveries(*outcome) *Failure {
	x.combinationsStarted = time.Now()
	byFirst := map[deviation][]injectionPoint{}
	var order []deviation
	for _, r := range x.afterFaults {
		if byFirst[r.first] == nil {
			order = append(order, r.first)
		}
		byFirst[r.first] = append(byFirst[r.first], r.second)
	}
	var candidates []schedule
	for _, first := range order {
		for _, second := range candidatesOf(byFirst[first]) {
			candidates = append(candidates, schedule{first, second})
		}
	}
	return x.secondFaults(candidates)
}

// secondFaults tries schedules with a second fault, or a sample of them.
func (x *exploration) secondFaults(candidates []schedule) *Failure {
	tried := candidates
	if x.options.Recoveries >= 0 {
		tried = sampled(candidates, x.options.Recoveries, nil)
	}
	failure := x.tryEach(tried, &x.cert.Recoveries)
	if failure == nil {
		x.cert.RecoveriesLeft = len(candidates) - x.cert.Recoveries
	}
	return failure
}

// tryEach tries schedules, as far as the budget allows, and counts those without a failure.
func (x *exploration) tryEach(schedules []schedule, count *int) *Failure {
	for _, s := range schedules {
		if x.outOfTime() {
			break
		}
		if _, failure := x.try(s); failure != nil {
			return failure
		}
		*count++
	}
	return nil
}

// pairs tries two faults at once: all pairs, if the options and the time allow it, or some. Pairs at points near each
// other come first, because one fault is more likely to affect the recovery from the other one there.
func (x *exploration) pairs(reference *outcome) *Failure {
	singles := candidatesOf(reference.points)
	at := map[point]int{}
	for i, m := range reference.points {
		at[m.point] = i
	}
	apart := func(a, b int) int {
		distance := at[singles[a].point] - at[singles[b].point]
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
	ofOneKind := func(pair [2]int) bool { return singles[pair[0]].isAboutKindOf(singles[pair[1]].site) }
	ofTwoKinds := slices.DeleteFunc(slices.Clone(near), ofOneKind)
	near = append(slices.DeleteFunc(near, func(pair [2]int) bool { return !ofOneKind(pair) }), ofTwoKinds...)
	if x.options.Pairs >= 0 {
		near = near[:min(len(near), x.options.Pairs*3/4)]
		distant = min(distant, x.options.Pairs-len(near))
	}
	for _, pair := range near {
		if failure, done := x.pair(singles, pair); done {
			return failure
		}
	}
	next := mixed(len(singles)*(len(singles)-1)/2, random)
	for distant > 0 {
		pair := pairOf(next())
		if apart(pair[0], pair[1]) <= nearby {
			continue
		}
		distant--
		if failure, done := x.pair(singles, pair); done {
			return failure
		}
	}
	return nil
}

// pair tries two faults. It reports whether the search ends, with a failure or because the budget is used up.
func (x *exploration) pair(singles []deviation, pair [2]int) (failure *Failure, done bool) {
	if x.outOfTime() {
		return nil, true
	}
	if _, failure = x.try(schedule{singles[pair[0]], singles[pair[1]]}); failure != nil {
		return failure, true
	}
	x.cert.Pairs++
	return nil, false
}

// mixed returns a function that returns each number below n once, in a mixed order. There may be too many to list them.
func mixed(n int, random *rand.Rand) func() int {
	if n < 2 {
		return func() int { return 0 }
	}
	// A step that has no divisor in common with n reaches all numbers. With about 0.618 n, successive numbers are far
	// apart.
	step := int(0.618*float64(n)) + random.IntN(n/8+1)
	for gcd(step, n) != 1 {
		step++
	}
	at := random.IntN(n)
	return func() int {
		at = (at + step) % n
		return at
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// pairOf returns the n-th pair of numbers of which the first one is the lower one: 0 1, 0 2, 1 2, 0 3 and so on.
func pairOf(n int) [2]int {
	upper := int((1 + math.Sqrt(float64(1+8*n))) / 2)
	for upper*(upper-1)/2 > n {
		upper--
	}
	return [2]int{n - upper*(upper-1)/2, upper}
}

// nearby is the largest distance between two points near each other.
const nearby = 6

// swarm tries up to six faults at once, of some kinds at a time: a few kinds find more together than all kinds do.
func (x *exploration) swarm(reference *outcome) *Failure {
	points := slices.Clone(reference.points)
	for _, r := range x.afterFaults {
		points = append(points, r.second)
	}
	if len(points) == 0 {
		return nil
	}
	return x.tryRandom(func(n uint64) schedule { return randomSchedule(points, x.options.Seed, n) })
}

// tryRandom tries random schedules, which their number determines.
func (x *exploration) tryRandom(numbered func(n uint64) schedule) *Failure {
	for n := range x.options.Random {
		if x.outOfTime() {
			return nil
		}
		if _, failure := x.try(numbered(uint64(n))); failure != nil {
			return failure
		}
		x.cert.Random++
	}
	return nil
}

func randomSchedule(points []injectionPoint, seed, n uint64) schedule {
	random := rand.New(rand.NewPCG(seed, n<<8|2))
	kinds := faultSet(random.Uint32() | random.Uint32())
	s := schedule{}
	for range 2 + random.IntN(5) {
		m := points[random.IntN(len(points))]
		faults := (m.faults & kinds).faults()
		if len(faults) == 0 || s.at(m.point) != "" {
			continue
		}
		s = s.with(deviation{m.point, faults[random.IntN(len(faults))]})
	}
	return s
}

// outOfTime reports whether the budget is used up.
func (x *exploration) outOfTime() bool {
	return x.options.Budget > 0 && time.Since(x.combinationsStarted) > x.options.Budget
}
