// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// endingFaults end the process, and so switch the version.
var endingFaults = setOf(FaultRestart, FaultCrashBefore, FaultCrashAfter, FaultHandOver, FaultStaleStart)

// upgradeSearch is the search for a failure in one direction.
type upgradeSearch struct {
	*exploration

	// switches are the schedules that lead to the last version, with their points after it.
	switches []switched
	// before are all faults in the run of the old version.
	before []deviation
	// seen are the points after a switch for which faults are tried.
	seen map[newPoint]bool
	// changes describes what an upgrade at rest changes.
	changes upgradeChanges
}

// switched is a schedule that switches to the last version.
type switched struct {
	schedule schedule
	// rest is set for a switch while the controller is idle.
	rest bool
	// next are faults at points after it that no earlier switch has, and ends all faults there that end the process.
	next, ends []deviation
}

// newPoint is a point after a switch, counted from there.
type newPoint struct {
	site

	n, step int
}

// explore searches in both directions. The order depends on nothing but the scenarios and the options.
func (u *upgrades) explore(t *testing.T, o Options) *UpgradeReport {
	defer tune(t)()
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
				report.Failure = &Failure{Violation: reference.violations[0], schedule: schedule{}}
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
	return max(u.old.length(&u.old.reference.outcome), u.current.length(&u.current.reference.outcome))
}

// search tries all switches, then second faults after them, then faults before them, and random schedules.
func (x *upgradeSearch) search(previous *upgradeSearch) *Failure {
	x.cert.Seed = x.options.Seed
	phases := []func() *Failure{x.upgrades, x.after, x.shortlyBefore, x.swarm}
	if previous != nil {
		phases = []func() *Failure{func() *Failure { return x.rollbacks(previous) }, x.after, x.swarm}
		x.before = previous.before
	}
	for _, phase := range phases {
		if failure := phase(); failure != nil {
			return failure
		}
	}
	return nil
}

// upgrades ends the process of the old version at each point.
func (x *upgradeSearch) upgrades() *Failure {
	points := x.plan.reference.points
	x.before = candidatesOf(points)
	found, enumerated := candidates(onlyEnding(points))
	// An upgrade at rest is the easiest one to understand.
	slices.SortStableFunc(found, func(a, b deviation) int { return boolOrder(a.isRest(), b.isRest()) })
	x.cert.Points, x.cert.Enumerated, x.cert.Pruned = len(points), enumerated, enumerated-len(found)
	tried := found
	if most := x.mostSingles(); most > 0 {
		tried = sampled(found, most, roundsOf(found))
	}
	x.cert.SinglesLeft = len(found) - len(tried)
	for _, d := range tried {
		if failure := x.switchWith(schedule{d}); failure != nil {
			return failure
		}
		x.cert.Singles++
	}
	return nil
}

// onlyEnding returns points with only those of their faults that end the process.
func onlyEnding(points []injectionPoint) []injectionPoint {
	found := slices.Clone(points)
	for i := range found {
		found[i].faults &= endingFaults
	}
	return found
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

// isRest reports whether a fault ends the process while the controller is idle.
func (d deviation) isRest() bool { return d.fault == FaultRestart || d.fault == FaultStaleStart }

// switchWith tries a schedule, and records the points after its last switch.
func (x *upgradeSearch) switchWith(s schedule) *Failure {
	o, failure := x.try(s)
	if failure != nil {
		return failure
	}
	if len(o.starts) <= len(s) {
		return nil // not all processes were started
	}
	after := o.points[o.starts[len(s)]:]
	rest := !slices.ContainsFunc(s, func(d deviation) bool { return !d.isRest() })
	if rest && len(s) == 1 {
		x.changes.add(x.plan, &o, s[0])
	}
	x.switches = append(x.switches, switched{
		schedule: s, rest: rest, next: candidatesOf(x.unseen(after)), ends: candidatesOf(onlyEnding(after)),
	})
	return nil
}

// unseen returns the points that no earlier switch has.
func (x *upgradeSearch) unseen(after []injectionPoint) []injectionPoint {
	visits := map[site]int{}
	return slices.DeleteFunc(slices.Clone(after), func(m injectionPoint) bool {
		visits[m.site]++
		p := newPoint{m.site, visits[m.site], m.step}
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
	var twiceAtRest, atRest, inMiddle []schedule
	for _, s := range previous.switches {
		for _, end := range s.ends {
			switch {
			case s.rest && end.isRest():
				twiceAtRest = append(twiceAtRest, s.schedule.with(end))
			case s.rest:
				atRest = append(atRest, s.schedule.with(end))
			default:
				inMiddle = append(inMiddle, s.schedule.with(end))
			}
		}
	}
	atRest = append(twiceAtRest, atRest...) // the easiest ones to understand come first
	x.cert.Enumerated = len(atRest) + len(inMiddle)
	tried := atRest
	if most := x.mostSingles(); most > 0 {
		tried = sampled(atRest, most, nil)
	}
	if x.options.Recoveries >= 0 {
		inMiddle = sampled(inMiddle, x.options.Recoveries, nil)
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
	var found []schedule
	for _, s := range x.switches {
		for _, next := range s.next {
			found = append(found, s.schedule.with(next))
		}
	}
	return x.secondFaults(found)
}

// shortlyBefore tries faults of the old version shortly before an upgrade.
func (x *upgradeSearch) shortlyBefore() *Failure {
	at := map[point]int{}
	for i, m := range x.plan.reference.points {
		at[m.point] = i
	}
	var pairs []schedule
	for _, d := range x.before {
		if endingFaults.has(d.fault) {
			continue
		}
		for _, s := range x.switches {
			if distance := at[s.schedule[0].point] - at[d.point]; distance > 0 && distance <= nearby {
				pairs = append(pairs, schedule{d}.with(s.schedule[0]))
			}
		}
	}
	x.cert.PairsInAll = len(pairs)
	random := rand.New(rand.NewPCG(x.options.Seed, 1))
	random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	if x.options.Pairs >= 0 {
		pairs = pairs[:min(len(pairs), x.options.Pairs)]
	}
	return x.tryEach(pairs, &x.cert.Pairs)
}

// swarm tries a switch with up to five other faults, of some kinds at a time.
func (x *upgradeSearch) swarm() *Failure {
	if len(x.switches) == 0 {
		return nil
	}
	return x.tryRandom(x.randomSchedule)
}

func (x *upgradeSearch) randomSchedule(n uint64) schedule {
	random := rand.New(rand.NewPCG(x.options.Seed, n<<8|2))
	kinds := faultSet(random.Uint32() | random.Uint32())
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
		if d := from[random.IntN(len(from))]; kinds.has(d.fault) && faults.at(d.point) == "" {
			faults = faults.with(d)
		}
	}
	return faults
}
