// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// exploration looks for a schedule that violates something.
type exploration struct {
	plan    *plan
	t       *testing.T
	options Options
	begin   time.Time
	// more are points that only are there after a fault, with that fault.
	more []recovery
	cert Certificate
	seen map[point]bool
}

// recovery is what could go wrong after something has gone wrong.
type recovery struct {
	first  deviation
	second meeting
}

// explore looks for a schedule that violates something, and returns the first one. The order, and so the result, depends on nothing but the scenario and the
// options, as long as no budget of time ends it.
func explore(t *testing.T, p *plan, options Options) *Report {
	x := &exploration{plan: p, t: t, options: options, begin: time.Now(), seen: map[point]bool{}}
	x.cert.Seed = options.Seed
	report := &Report{}
	defer func() {
		x.cert.Elapsed = time.Since(x.begin)
		report.Certificate = x.cert
	}()
	reference, ok := p.refer(t)
	if !ok {
		report.Failure = &Failure{Violation: reference.violations[0], schedule: schedule{}}
		return report
	}
	x.cert.Reconciles = reference.reconciles
	x.cert.Idle = reference.idle
	for _, phase := range []func(*outcome) *Failure{x.singles, x.recoveries, x.pairs, x.swarm} {
		if report.Failure = phase(&reference); report.Failure != nil {
			return report
		}
	}
	return report
}

// try makes a run, and returns its outcome and what it violates.
func (x *exploration) try(s schedule) (outcome, *Failure) {
	o := x.plan.execute(x.t, s, x.plan.usual(), nil)
	x.cert.Schedules++
	if v, ok := o.violation(); ok {
		return o, &Failure{Violation: v, schedule: s}
	}
	return o, nil
}

// singles tries each fault at each point of the run without faults.
func (x *exploration) singles(reference *outcome) *Failure {
	for _, m := range reference.met {
		x.seen[m.point] = true
	}
	x.cert.Points = len(reference.met)
	for _, d := range x.candidates(reference.met) {
		o, failure := x.try(schedule{d})
		if failure != nil {
			return failure
		}
		x.cert.Singles++
		for _, m := range o.met {
			if !x.seen[m.point] {
				x.more = append(x.more, recovery{d, m})
			}
		}
	}
	return nil
}

// candidates lists the faults at points, without those that are the same as another one: a crash before a request is the same as one after the last write
// before it, and an answer to a write without an effect can as well be lost.
func (x *exploration) candidates(met []meeting) []deviation {
	type end struct {
		version int64
		step    int
	}
	ends := map[end]bool{}
	var found []deviation
	for _, m := range met {
		for _, fault := range m.faults.faults() {
			x.cert.Enumerated++
			switch fault {
			case CrashBefore, CrashAfter:
				at := end{m.version, m.step}
				if fault == CrashAfter {
					at.version = m.after
				}
				if ends[at] {
					x.cert.Pruned++
					continue
				}
				ends[at] = true
			case TimeoutApplied:
				if m.after == m.version && m.faults.has(TimeoutLost) {
					x.cert.Pruned++
					continue
				}
			}
			found = append(found, deviation{m.point, fault})
		}
	}
	// What finds the most comes first.
	slices.SortStableFunc(found, func(a, b deviation) int { return rank(a.fault) - rank(b.fault) })
	return found
}

func rank(fault Fault) int {
	switch fault {
	case ListOrder:
		return 0
	case CrashAfter, TimeoutApplied, ChildDeleted:
		return 1
	case LagReconcile, LagLong, Conflict:
		return 2
	default:
		return 3
	}
}

// recoveries tries each fault at the points that are only there after another one.
func (x *exploration) recoveries(*outcome) *Failure {
	byFirst := map[deviation][]meeting{}
	var order []deviation
	for _, r := range x.more {
		if byFirst[r.first] == nil {
			order = append(order, r.first)
		}
		byFirst[r.first] = append(byFirst[r.first], r.second)
	}
	var candidates []schedule
	for _, first := range order {
		for _, second := range x.candidates(byFirst[first]) {
			candidates = append(candidates, schedule{first, second})
		}
	}
	limit := len(candidates)
	if x.options.Recoveries >= 0 {
		limit = min(limit, x.options.Recoveries)
	}
	// If not all of them can be, those that are tried come from everywhere.
	for n := range limit {
		if x.late() {
			break
		}
		if _, failure := x.try(candidates[n*len(candidates)/limit]); failure != nil {
			return failure
		}
		x.cert.Recoveries++
	}
	x.cert.RecoveriesLeft = len(candidates) - x.cert.Recoveries
	return nil
}

// pairs tries two faults at once: all of them, if that is asked for and there is time, or some.
func (x *exploration) pairs(reference *outcome) *Failure {
	singles := x.candidates(reference.met)
	x.cert.PairsInAll = len(singles) * (len(singles) - 1) / 2
	random := rand.New(rand.NewPCG(x.options.Seed, 1))
	tried := map[[2]int]bool{}
	try := func(a, b int) *Failure {
		if a > b {
			a, b = b, a
		}
		if a == b || tried[[2]int{a, b}] || singles[a].point == singles[b].point {
			return nil
		}
		tried[[2]int{a, b}] = true
		_, failure := x.try(schedule{singles[a], singles[b]})
		x.cert.Pairs++
		return failure
	}
	if len(singles) < 2 {
		return nil
	}
	if x.options.AllPairs || x.cert.PairsInAll <= x.options.Pairs {
		all := random.Perm(len(singles) * len(singles))
		for _, n := range all {
			if a, b := n/len(singles), n%len(singles); a < b {
				if x.late() {
					return nil
				}
				if failure := try(a, b); failure != nil {
					return failure
				}
			}
		}
		return nil
	}
	for range x.options.Pairs {
		if x.late() {
			return nil
		}
		if failure := try(random.IntN(len(singles)), random.IntN(len(singles))); failure != nil {
			return failure
		}
	}
	return nil
}

// swarm tries up to six faults at once, of some kinds at a time: a few kinds that meet often find what all kinds together hide.
func (x *exploration) swarm(reference *outcome) *Failure {
	points := slices.Clone(reference.met)
	for _, r := range x.more {
		points = append(points, r.second)
	}
	if len(points) == 0 {
		return nil
	}
	for n := range x.options.Random {
		if x.late() {
			return nil
		}
		if _, failure := x.try(randomSchedule(points, x.options.Seed, uint64(n))); failure != nil {
			return failure
		}
		x.cert.Random++
	}
	return nil
}

func randomSchedule(points []meeting, seed, n uint64) schedule {
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

// late is true when there is no time left.
func (x *exploration) late() bool {
	return x.options.Budget > 0 && time.Since(x.begin) > x.options.Budget
}
