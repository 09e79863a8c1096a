// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
)

// Limits limit a search for schedules, with the fields of the type Options of package converge.
type Limits struct {
	Budget         time.Duration
	SingleRequests int
	Recoveries     int
	Pairs          int
	Requests       int
	Random         int
	Seed           uint64
}

// Fewest is the least number of second faults and of pairs, even if runs are long.
const Fewest = 50

// For returns the limits for runs of a length in requests.
func (l Limits) For(length int) Limits {
	if l.Requests <= 0 {
		return l
	}
	most := max(l.Requests/length, Fewest)
	if l.Recoveries > 0 {
		l.Recoveries = min(l.Recoveries, most)
	}
	if l.Pairs > 0 {
		l.Pairs = min(l.Pairs, most)
	}
	return l
}

// Counts counts what was tried, as a certificate has it.
type Counts struct {
	Points, Enumerated, Pruned, Singles, SinglesLeft int
	Recoveries, RecoveriesLeft                       int
	Pairs, PairsInAll, Random                        int
	Runs                                             int
	Advice                                           []string
}

// Schedules is a search for a schedule of faults that fails.
type Schedules struct {
	Limits
	Counts

	// Test is the name of the test, for people who wait.
	Test string
	// Run executes a schedule.
	Run func(inject.Schedule) judge.Outcome
	// Reference are the points of the run without faults, and Length its length in requests.
	Reference []inject.Injectable
	Length    int
	// Begin is when the search has begun.
	Begin time.Time

	// last is the outcome of the last schedule.
	last judge.Outcome
	// lastProgress is when progress was last printed, and combinationsStarted when the search for failures of several
	// faults began.
	lastProgress, combinationsStarted time.Time
	// afterFaults are the points that only exist after a fault, with that fault.
	afterFaults []recovery
}

// recovery is a second fault at a point that only exists after a first one.
type recovery struct {
	first  inject.Deviation
	second inject.Injectable
}

// Phases are the phases of a search without an upgrade.
func (x *Schedules) Phases() []func() *Failure[inject.Schedule] {
	return []func() *Failure[inject.Schedule]{x.singles, x.recoveries, x.pairs, x.swarm}
}

// Try executes a schedule, and returns its failure.
func (x *Schedules) Try(s inject.Schedule) *Failure[inject.Schedule] {
	x.last = x.Run(s)
	x.Runs++
	x.progress()
	for _, advice := range x.last.Advices {
		if !slices.Contains(x.Advice, advice) {
			x.Advice = append(x.Advice, advice)
		}
	}
	return x.Failed(s, &x.last)
}

// Failed returns the failure of a schedule, or nil.
func (x *Schedules) Failed(s inject.Schedule, o *judge.Outcome) *Failure[inject.Schedule] {
	v, failed := o.First()
	if !failed {
		return nil
	}
	return &Failure[inject.Schedule]{Candidate: s, Violation: v, Run: func(s inject.Schedule) (finding.Violation, bool) {
		o := x.Run(s)
		return o.First()
	}}
}

// progress prints the progress every ten seconds: a search with a budget may take hours.
func (x *Schedules) progress() {
	if time.Since(x.lastProgress) < 10*time.Second || time.Since(x.Begin) < 10*time.Second {
		return
	}
	x.lastProgress = time.Now()
	fmt.Fprintf(
		os.Stderr, "%s: %d schedules in %s: %d single faults, %d second faults, %d pairs, %d random\n", x.Test, x.Runs,
		time.Since(x.Begin).Round(time.Second), x.Singles, x.Counts.Recoveries, x.Counts.Pairs, x.Counts.Random,
	)
}

// each tries schedules, and counts those without a failure.
func (x *Schedules) each(
	schedules iter.Seq[inject.Schedule], stop func() bool, count *int,
) *Failure[inject.Schedule] {
	return Each(schedules, stop, x.Try, count)
}

// outOfTime reports whether the budget is used up.
func (x *Schedules) outOfTime() bool {
	return x.Budget > 0 && time.Since(x.combinationsStarted) > x.Budget
}

// singles tries each fault at each point of the run without faults, or a sample of them if that would take too long.
func (x *Schedules) singles() *Failure[inject.Schedule] {
	seen := map[inject.Point]bool{}
	for _, m := range x.Reference {
		seen[m.Point] = true
	}
	singles, enumerated := inject.Candidates(x.Reference)
	tried := x.sample(singles, enumerated)
	return x.each(func(yield func(inject.Schedule) bool) {
		for _, d := range tried {
			if !yield(inject.Schedule{d}) {
				return
			}
			for _, m := range x.last.Points {
				if !seen[m.Point] {
					x.afterFaults = append(x.afterFaults, recovery{d, m})
				}
			}
		}
	}, never, &x.Singles)
}

// sample returns the single faults that are tried, of those that differ from each other.
func (x *Schedules) sample(singles []inject.Deviation, enumerated int) []inject.Deviation {
	x.Points, x.Enumerated, x.Pruned = len(x.Reference), enumerated, enumerated-len(singles)
	tried := singles
	if most := x.mostSingles(); most > 0 {
		tried = Sample(singles, most, inject.RoundsOf(singles))
	}
	x.SinglesLeft = len(singles) - len(tried)
	return tried
}

// mostSingles is how many single faults are tried, or 0 for all.
func (x *Schedules) mostSingles() int {
	if x.SingleRequests <= 0 {
		return 0
	}
	return max(x.SingleRequests/x.Length, Fewest)
}

// recoveries tries the faults at the points that only exist after another one.
func (x *Schedules) recoveries() *Failure[inject.Schedule] {
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
func (x *Schedules) secondFaults(candidates []inject.Schedule) *Failure[inject.Schedule] {
	x.combinationsStarted = time.Now()
	tried := candidates
	if x.Limits.Recoveries >= 0 {
		tried = Sample(candidates, x.Limits.Recoveries, nil)
	}
	failure := x.each(slices.Values(tried), x.outOfTime, &x.Counts.Recoveries)
	if failure == nil {
		x.RecoveriesLeft = len(candidates) - x.Counts.Recoveries
	}
	return failure
}

// nearby is the largest distance between two points near each other.
const nearby = 6

// pairs tries two faults at once: all pairs, if the limits and the time allow it, or some. Pairs at points near each
// other come first, because one fault is more likely to affect the recovery from the other one there.
func (x *Schedules) pairs() *Failure[inject.Schedule] {
	singles, at := inject.CandidatesOf(x.Reference), positions(x.Reference)
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
	x.PairsInAll = len(near) + distant
	random := rand.New(rand.NewPCG(x.Seed, 1))
	random.Shuffle(len(near), func(i, j int) { near[i], near[j] = near[j], near[i] })
	// A lost response and a late event of the same object are the usual reason for a second object.
	ofOneKind := func(pair [2]int) bool { return singles[pair[0]].IsAboutKindOf(singles[pair[1]].Site) }
	ofTwoKinds := slices.DeleteFunc(slices.Clone(near), ofOneKind)
	near = append(slices.DeleteFunc(near, func(pair [2]int) bool { return !ofOneKind(pair) }), ofTwoKinds...)
	if x.Limits.Pairs >= 0 {
		near = near[:min(len(near), x.Limits.Pairs*3/4)]
		distant = min(distant, x.Limits.Pairs-len(near))
	}
	next := Mixed(len(singles)*(len(singles)-1)/2, random)
	return x.each(func(yield func(inject.Schedule) bool) {
		for _, pair := range near {
			if !yield(inject.Schedule{singles[pair[0]], singles[pair[1]]}) {
				return
			}
		}
		for distant > 0 {
			pair := PairOf(next())
			if apart(pair[0], pair[1]) <= nearby {
				continue
			}
			distant--
			if !yield(inject.Schedule{singles[pair[0]], singles[pair[1]]}) {
				return
			}
		}
	}, x.outOfTime, &x.Counts.Pairs)
}

// positions returns the positions of points in a run.
func positions(points []inject.Injectable) map[inject.Point]int {
	at := map[inject.Point]int{}
	for i, m := range points {
		at[m.Point] = i
	}
	return at
}

// swarm tries up to six faults at once, of some kinds at a time: a few kinds find more together than all kinds do.
func (x *Schedules) swarm() *Failure[inject.Schedule] {
	points := slices.Clone(x.Reference)
	for _, r := range x.afterFaults {
		points = append(points, r.second)
	}
	if len(points) == 0 {
		return nil
	}
	return x.random(func(n uint64) inject.Schedule { return RandomSchedule(points, x.Seed, n) })
}

// random tries random schedules, which their number determines.
func (x *Schedules) random(numbered func(n uint64) inject.Schedule) *Failure[inject.Schedule] {
	return x.each(func(yield func(inject.Schedule) bool) {
		for n := range x.Limits.Random {
			if !yield(numbered(uint64(n))) {
				return
			}
		}
	}, x.outOfTime, &x.Counts.Random)
}

// RandomSchedule returns the n-th random schedule of a seed, with faults at some of the points.
func RandomSchedule(points []inject.Injectable, seed, n uint64) inject.Schedule {
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

// Similar tries schedules that are similar to the one of a recording, and counts them.
func (x *Schedules) Similar(schedules []inject.Schedule, count *int) *Failure[inject.Schedule] {
	failure := x.each(slices.Values(schedules), never, count)
	if failure != nil {
		*count++ // it was tried, too
	}
	return failure
}

// ShrinkSchedule finds the fewest and simplest faults that cause the same violation.
func ShrinkSchedule(f *Failure[inject.Schedule]) {
	f.Shrink(func(s inject.Schedule) int { return len(s) }, drop, simplify)
}

// drop removes the faults that are not needed.
func drop(f *Failure[inject.Schedule]) {
	for i := 0; i < len(f.Candidate); {
		if !f.Replace(slices.Delete(slices.Clone(f.Candidate), i, i+1)) {
			i++
		}
	}
}

// simplify replaces faults by simpler ones, or by the same ones earlier, if the failure remains.
func simplify(f *Failure[inject.Schedule]) {
	for i := range f.Candidate {
		for _, fault := range f.Candidate[i].Fault.Row().Simpler {
			easier := slices.Clone(f.Candidate)
			if easier[i].Fault = fault; f.Replace(easier) {
				break
			}
		}
		for n := 1; n < f.Candidate[i].N; n++ {
			earlier := slices.Clone(f.Candidate)
			if earlier[i].N = n; f.Replace(earlier) {
				break
			}
		}
	}
}
