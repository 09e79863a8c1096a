// SPDX-License-Identifier: Apache-2.0

// Package search has what all searches for failures have in common: phases, tries within a limit, samples, pairs in a
// mixed order, and shrinking. It does not know what is tried.
package search

import (
	"iter"
	"math"
	"math/rand/v2"
)

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
// do not fail.
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

// Shrink repeats the passes that make a failure smaller, as long as they do.
func Shrink(size func() int, passes ...func()) {
	for before := -1; before != size(); {
		before = size()
		for _, pass := range passes {
			pass()
		}
	}
}

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
