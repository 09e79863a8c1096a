// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/search"
)

// upgradeSearch is the search for a failure in one direction.
type upgradeSearch struct {
	*exploration

	// switches are the schedules that lead to the last version, with their points after it.
	switches []switched
	// before are all faults in the run of the old version.
	before []inject.Deviation
	// seen are the points after a switch for which faults are tried.
	seen map[newPoint]bool
	// changes describes what an upgrade at rest changes.
	changes upgradeChanges
}

// switched is a schedule that switches to the last version.
type switched struct {
	schedule inject.Schedule
	// rest is set for a switch while the controller is idle.
	rest bool
	// next are faults at points after it that no earlier switch has, and ends all faults there that end the process.
	next, ends []inject.Deviation
}

// newPoint is a point after a switch, counted from there.
type newPoint struct {
	inject.Site

	n, step int
}

// explore searches in both directions. The order depends on nothing but the scenarios and the options.
func (u *upgrades) explore(t *testing.T, o Options) *UpgradeReport {
	defer search.Tune(t)()
	begin := time.Now()
	report := &UpgradeReport{}
	cert := &report.Certificate
	defer func() {
		cert.Elapsed, cert.LeftOut, cert.failed = time.Since(begin), u.leftOut(), report.Failure != nil
	}()
	var previous *upgradeSearch
	_, noAdvice := u.current.Off[OracleAdvice]
	for _, p := range u.directions {
		x := &upgradeSearch{exploration: newExploration(t, p, o), seen: map[newPoint]bool{}}
		if previous == nil {
			if reference, ok := p.refer(t); !ok {
				report.Failure = &Failure{Violation: Violation(reference.Violations[0]), schedule: inject.Schedule{}}
				report.failed = p.failedVersion
				return report
			}
		}
		p.reference, p.random = u.old.reference, u.directions[0].random
		x.limit(u)
		report.Failure, report.failed = x.search(previous), p
		if x.cert.Elapsed = time.Since(x.begin); noAdvice {
			x.cert.Advice = nil
		}
		if previous == nil {
			cert.Upgrade, cert.Changes = x.cert, x.changes.lines
		} else {
			cert.Rollback = &x.cert
		}
		if report.Failure != nil {
			return report
		}
		previous = x
	}
	return report
}

// limit applies the options to the longer runs of both versions.
func (x *upgradeSearch) limit(u *upgrades) { x.options.limit(u.length()) }

func (u *upgrades) length() int {
	return max(u.old.length(&u.old.reference.Outcome), u.current.length(&u.current.reference.Outcome))
}

// search tries all switches, then second faults after them, then faults before them, and random schedules.
func (x *upgradeSearch) search(previous *upgradeSearch) *Failure {
	x.cert.Seed = x.options.Seed
	phases := []func() *Failure{x.upgrades, x.after, x.shortlyBefore, x.swarm}
	if previous != nil {
		phases = []func() *Failure{func() *Failure { return x.rollbacks(previous) }, x.after, x.swarm}
		x.before = previous.before
	}
	return search.First(phases...)
}

// upgrades ends the process of the old version at each point.
func (x *upgradeSearch) upgrades() *Failure {
	points := x.plan.reference.Points
	x.before = inject.CandidatesOf(points)
	found, enumerated := inject.Candidates(inject.OnlyEnding(points))
	// An upgrade at rest is the easiest one to understand.
	slices.SortStableFunc(found, func(a, b inject.Deviation) int { return boolOrder(a.IsRest(), b.IsRest()) })
	x.cert.Points, x.cert.Enumerated, x.cert.Pruned = len(points), enumerated, enumerated-len(found)
	tried := found
	if most := x.mostSingles(); most > 0 {
		tried = search.Sample(found, most, inject.RoundsOf(found))
	}
	x.cert.SinglesLeft = len(found) - len(tried)
	for _, d := range tried {
		if failure := x.switchWith(inject.Schedule{d}); failure != nil {
			return failure
		}
		x.cert.Singles++
	}
	return nil
}

// boolOrder orders true before false.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// switchWith tries a schedule, and records the points after its last switch.
func (x *upgradeSearch) switchWith(s inject.Schedule) *Failure {
	o, failure := x.try(s)
	if failure != nil {
		return failure
	}
	if len(o.Starts) <= len(s) {
		return nil // not all processes were started
	}
	after := o.Points[o.Starts[len(s)]:]
	rest := !slices.ContainsFunc(s, func(d inject.Deviation) bool { return !d.IsRest() })
	if rest && len(s) == 1 {
		x.changes.add(x.plan, &o, s[0])
	}
	x.switches = append(x.switches, switched{
		schedule: s, rest: rest, next: inject.CandidatesOf(x.unseen(after)),
		ends: inject.CandidatesOf(inject.OnlyEnding(after)),
	})
	return nil
}

// unseen returns the points that no earlier switch has.
func (x *upgradeSearch) unseen(after []inject.Injectable) []inject.Injectable {
	visits := map[inject.Site]int{}
	return slices.DeleteFunc(slices.Clone(after), func(m inject.Injectable) bool {
		visits[m.Site]++
		p := newPoint{m.Site, visits[m.Site], m.Step}
		if x.seen[p] {
			return true
		}
		x.seen[p] = true
		return false
	})
}

// rollbacks ends the process of the new version: after an upgrade at rest at each point, and in the middle of an
// upgrade.
func (x *upgradeSearch) rollbacks(previous *upgradeSearch) *Failure {
	var twiceAtRest, atRest, inMiddle []inject.Schedule
	for _, s := range previous.switches {
		for _, end := range s.ends {
			switch {
			case s.rest && end.IsRest():
				twiceAtRest = append(twiceAtRest, s.schedule.With(end))
			case s.rest:
				atRest = append(atRest, s.schedule.With(end))
			default:
				inMiddle = append(inMiddle, s.schedule.With(end))
			}
		}
	}
	atRest = append(twiceAtRest, atRest...) // the easiest ones to understand come first
	x.cert.Enumerated = len(atRest) + len(inMiddle)
	tried := atRest
	if most := x.mostSingles(); most > 0 {
		tried = search.Sample(atRest, most, nil)
	}
	if x.options.Recoveries >= 0 {
		inMiddle = search.Sample(inMiddle, x.options.Recoveries, nil)
	}
	for _, s := range slices.Concat(tried, inMiddle) {
		if failure := x.switchWith(s); failure != nil {
			return failure
		}
		x.cert.Singles++
	}
	x.cert.SinglesLeft = x.cert.Enumerated - x.cert.Singles
	return nil
}

// after tries further faults after the last switch.
func (x *upgradeSearch) after() *Failure {
	x.combinationsStarted = time.Now()
	var found []inject.Schedule
	for _, s := range x.switches {
		for _, next := range s.next {
			found = append(found, s.schedule.With(next))
		}
	}
	return x.secondFaults(found)
}

// shortlyBefore tries faults of the old version shortly before an upgrade.
func (x *upgradeSearch) shortlyBefore() *Failure {
	at := map[inject.Point]int{}
	for i, m := range x.plan.reference.Points {
		at[m.Point] = i
	}
	var pairs []inject.Schedule
	for _, d := range x.before {
		if inject.EndingFaults.Has(d.Fault) {
			continue
		}
		for _, s := range x.switches {
			if distance := at[s.schedule[0].Point] - at[d.Point]; distance > 0 && distance <= nearby {
				pairs = append(pairs, inject.Schedule{d}.With(s.schedule[0]))
			}
		}
	}
	x.cert.PairsInAll = len(pairs)
	random := rand.New(rand.NewPCG(x.options.Seed, 1))
	random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	if x.options.Pairs >= 0 {
		pairs = pairs[:min(len(pairs), x.options.Pairs)]
	}
	return x.tryEach(slices.Values(pairs), &x.cert.Pairs)
}

// swarm tries a switch with up to five other faults, of some kinds at a time.
func (x *upgradeSearch) swarm() *Failure {
	if len(x.switches) == 0 {
		return nil
	}
	return x.tryRandom(x.randomSchedule)
}

func (x *upgradeSearch) randomSchedule(n uint64) inject.Schedule {
	random := rand.New(rand.NewPCG(x.options.Seed, n<<8|2))
	kinds := inject.Set(random.Uint32() | random.Uint32())
	s := x.switches[random.IntN(len(x.switches))]
	faults := slices.Clone(s.schedule)
	for range 1 + random.IntN(5) {
		from := x.before
		if nearbySwitch := x.switches[random.IntN(len(x.switches))]; random.IntN(2) == 0 {
			from = slices.Concat(s.ends, nearbySwitch.next)
		}
		if len(from) == 0 {
			continue
		}
		if d := from[random.IntN(len(from))]; kinds.Has(d.Fault) && faults.At(d.Point) == "" {
			faults = faults.With(d)
		}
	}
	return faults
}
