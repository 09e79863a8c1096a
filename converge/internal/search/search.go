// SPDX-License-Identifier: Apache-2.0

// Package search has the searches for failures. A search proposes candidates in phases and tries them, until one of
// them fails; then it shrinks that one, as long as it fails in the same way. [Schedules] proposes schedules of faults,
// [Upgrades] those that change the version, and [Walks] what users write one after the other. It does not know how a
// candidate is run, nor what is wrong with it.
package search

import (
	"iter"
	"math"
	"math/rand/v2"

	"trueup.dev/converge/internal/finding"
)

// Failure is a candidate that fails.
type Failure[C any] struct {
	Candidate C
	Violation finding.Violation
	// Run executes a candidate, and returns the first violation.
	Run func(C) (finding.Violation, bool)
	// Shrinks is the number of runs that were needed to make the candidate smaller.
	Shrinks int
}

// Replace makes another candidate the one of the failure if it fails in the same way, and reports whether it does.
func (f *Failure[C]) Replace(smaller C) bool {
	f.Shrinks++
	v, failed := f.Run(smaller)
	if !failed || !v.IsLike(f.Violation) {
		return false
	}
	f.Candidate, f.Violation = smaller, v
	return true
}

// Shrink repeats the passes that make a failure smaller, as long as they do.
func (f *Failure[C]) Shrink(size func(C) int, passes ...func(*Failure[C])) {
	for before := -1; before != size(f.Candidate); {
		before = size(f.Candidate)
		for _, pass := range passes {
			pass(f)
		}
	}
}

// First runs the phases of a search until one of them finds a failure, and returns that, or nil.
func First[F any](phases ...func() *F) *F {
	for _, phase := range phases {
		if failure := phase(); failure != nil {
			return failure
		}
	}
	return nil
}

// Each tries candidates until one fails, whose failure it returns, or until the search must stop. It counts those that
// do not fail. What proposes the candidates goes on after each of these, and so can depend on its run.
func Each[C, F any](candidates iter.Seq[C], stop func() bool, try func(C) *F, count *int) *F {
	for c := range candidates {
		if stop() {
			return nil
		}
		if failure := try(c); failure != nil {
			return failure
		}
		*count++
	}
	return nil
}

// never is for phases that nothing ends.
func never() bool { return false }

// Sample returns at most a number of items: all of the first rounds, and of the next round items that are evenly
// spread. Without rounds, all items are evenly spread. Rounds are numbered from 0 on.
func Sample[T any](items []T, most int, round func(T) int) []T {
	if most >= len(items) {
		return items
	}
	if round == nil {
		round = func(T) int { return 0 }
	}
	chosen := make([]T, 0, most)
	for r := 0; len(chosen) < most; r++ {
		var group []T
		for _, item := range items {
			if round(item) == r {
				group = append(group, item)
			}
		}
		room := min(len(group), most-len(chosen))
		for n := range room {
			chosen = append(chosen, group[n*len(group)/room])
		}
	}
	return chosen
}

// Mixed returns a function that returns each number below n once, in a mixed order. There may be too many to list them.
func Mixed(n int, random *rand.Rand) func() int {
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

// PairOf returns the n-th pair of numbers, with the lower one first: 0 1, 0 2, 1 2, 0 3 and so on.
func PairOf(n int) [2]int {
	upper := int((1 + math.Sqrt(float64(1+8*n))) / 2)
	for upper*(upper-1)/2 > n {
		upper--
	}
	return [2]int{n - upper*(upper-1)/2, upper}
}
