// SPDX-License-Identifier: Apache-2.0

package search

import (
	"math/rand/v2"
	"slices"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
)

// Upgrades is a search for a schedule that fails in one direction: each fault that ends a process switches the version.
type Upgrades struct {
	*Schedules

	// AtRest is called with the outcome of an upgrade while the controller is idle, in a step.
	AtRest func(o *judge.Outcome, step int)

	// switches are the schedules that lead to the last version, with their points after it.
	switches []switched
	// before are all faults in the run of the old version.
	before []inject.Deviation
	// seen are the points after a switch for which faults are tried.
	seen map[newPoint]bool
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

// Search tries all switches, then second faults after them, then faults before them, and random schedules. After a
// search for upgrades, it searches for rollbacks.
func (x *Upgrades) Search(upgrades *Upgrades) *Failure[inject.Schedule] {
	x.seen = map[newPoint]bool{}
	if upgrades == nil {
		return First(x.upgrades, x.after, x.shortlyBefore, x.swarm)
	}
	x.before = upgrades.before
	return First(func() *Failure[inject.Schedule] { return x.rollbacks(upgrades) }, x.after, x.swarm)
}

// upgrades ends the process of the old version at each point.
func (x *Upgrades) upgrades() *Failure[inject.Schedule] {
	x.before = inject.CandidatesOf(x.Reference)
	found, enumerated := inject.Candidates(inject.OnlyEnding(x.Reference))
	// An upgrade at rest is the easiest one to understand.
	atRest := slices.DeleteFunc(slices.Clone(found), func(d inject.Deviation) bool { return !d.IsRest() })
	found = slices.Concat(atRest, slices.DeleteFunc(found, inject.Deviation.IsRest))
	var schedules []inject.Schedule
	for _, d := range x.sample(found, enumerated) {
		schedules = append(schedules, inject.Schedule{d})
	}
	return x.switchEach(schedules)
}

// switchEach tries schedules, and records the points after the last switch of each.
func (x *Upgrades) switchEach(schedules []inject.Schedule) *Failure[inject.Schedule] {
	return x.each(func(yield func(inject.Schedule) bool) {
		for _, s := range schedules {
			if !yield(s) {
				return
			}
			x.switched(s)
		}
	}, never, &x.Singles)
}

// switched records the points after the last switch of a schedule.
func (x *Upgrades) switched(s inject.Schedule) {
	o := &x.last
	if len(o.Starts) <= len(s) {
		return // not all processes were started
	}
	after := o.Points[o.Starts[len(s)]:]
	rest := !slices.ContainsFunc(s, func(d inject.Deviation) bool { return !d.IsRest() })
	at := slices.IndexFunc(x.Reference, func(m inject.Injectable) bool { return m.Point == s[0].Point })
	if rest && len(s) == 1 && at >= 0 {
		x.AtRest(o, x.Reference[at].Step)
	}
	x.switches = append(x.switches, switched{
		schedule: s, rest: rest, next: inject.CandidatesOf(x.unseen(after)),
		ends: inject.CandidatesOf(inject.OnlyEnding(after)),
	})
}

// unseen returns the points that no earlier switch has.
func (x *Upgrades) unseen(after []inject.Injectable) []inject.Injectable {
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
func (x *Upgrades) rollbacks(upgrades *Upgrades) *Failure[inject.Schedule] {
	var twiceAtRest, atRest, inMiddle []inject.Schedule
	for _, s := range upgrades.switches {
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
	x.Enumerated = len(atRest) + len(inMiddle)
	if most := x.mostSingles(); most > 0 {
		atRest = Sample(atRest, most, nil)
	}
	if x.Limits.Recoveries >= 0 {
		inMiddle = Sample(inMiddle, x.Limits.Recoveries, nil)
	}
	failure := x.switchEach(slices.Concat(atRest, inMiddle))
	if failure == nil {
		x.SinglesLeft = x.Enumerated - x.Singles
	}
	return failure
}

// after tries further faults after the last switch.
func (x *Upgrades) after() *Failure[inject.Schedule] {
	var found []inject.Schedule
	for _, s := range x.switches {
		for _, next := range s.next {
			found = append(found, s.schedule.With(next))
		}
	}
	return x.secondFaults(found)
}

// shortlyBefore tries faults of the old version shortly before an upgrade.
func (x *Upgrades) shortlyBefore() *Failure[inject.Schedule] {
	at := positions(x.Reference)
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
	x.PairsInAll = len(pairs)
	random := rand.New(rand.NewPCG(x.Seed, 1))
	random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	if x.Limits.Pairs >= 0 {
		pairs = pairs[:min(len(pairs), x.Limits.Pairs)]
	}
	return x.each(slices.Values(pairs), x.outOfTime, &x.Counts.Pairs)
}

// swarm tries a switch with up to five other faults, of some kinds at a time.
func (x *Upgrades) swarm() *Failure[inject.Schedule] {
	if len(x.switches) == 0 {
		return nil
	}
	return x.random(x.randomSchedule)
}

func (x *Upgrades) randomSchedule(n uint64) inject.Schedule {
	random := rand.New(rand.NewPCG(x.Seed, n<<8|2))
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
