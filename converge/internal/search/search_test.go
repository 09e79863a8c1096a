// SPDX-License-Identifier: Apache-2.0

package search

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/converge/internal/finding"
)

// TestMixedPairs checks that mixed returns each pair once, and not in order.
func TestMixedPairs(t *testing.T) {
	for _, of := range []int{2, 3, 4, 7, 40, 200} {
		n := of * (of - 1) / 2
		for seed := range uint64(3) {
			next := Mixed(n, rand.New(rand.NewPCG(seed, 1)))
			seen := map[[2]int]bool{}
			var order []int
			for range n {
				at := next()
				order = append(order, at)
				pair := PairOf(at)
				if pair[0] < 0 || pair[0] >= pair[1] || pair[1] >= of || seen[pair] {
					t.Fatalf("of %d, seed %d: the pair %v, after %d others", of, seed, pair, len(seen))
				}
				seen[pair] = true
			}
			if n > 10 && slices.IsSorted(order) {
				t.Errorf("of %d, seed %d: the pairs are in order", of, seed)
			}
		}
	}
}

// TestSample takes all items of the first rounds, and evenly spread ones of the next.
func TestSample(t *testing.T) {
	items := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
	odd := func(n int) int { return 2 * (n % 2) } // the second round is empty
	for name, c := range map[string]struct {
		most  int
		round func(int) int
		want  []int
	}{
		"without rounds": {3, nil, []int{0, 3, 6}},
		"two rounds":     {7, odd, []int{0, 2, 4, 6, 8, 1, 5}},
		"none":           {0, odd, []int{}},
		"all":            {9, odd, items},
	} {
		if diff := cmp.Diff(c.want, Sample(items, c.most, c.round)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestEach stops at the first failure, and when the search must stop. What does not fail is counted.
func TestEach(t *testing.T) {
	fails := func(at int) func(int) *int {
		return func(n int) *int {
			if n == at {
				return &n
			}
			return nil
		}
	}
	tried := 0
	if found := Each(slices.Values([]int{1, 2, 3, 4}), func() bool { return false }, fails(3), &tried); found == nil ||
		*found != 3 || tried != 2 {
		t.Errorf("got %v after %d", found, tried)
	}
	tried = 0
	if found := Each(slices.Values([]int{1, 2, 3}), func() bool { return tried == 1 }, fails(3), &tried); found != nil ||
		tried != 1 {
		t.Errorf("the search goes on: %v after %d", found, tried)
	}
}

// TestShrink repeats the passes as long as they make the failure smaller, and keeps its kind.
func TestShrink(t *testing.T) {
	f := &Failure[int]{Candidate: 10, Violation: finding.Violation{About: "a"}}
	f.Run = func(n int) (finding.Violation, bool) {
		v := finding.Violation{About: "a", Message: strconv.Itoa(n)}
		if n == 5 {
			v.About = "b"
		}
		return v, n >= 3
	}
	f.Shrink(func(n int) int { return n }, func(f *Failure[int]) {
		if !f.Replace(f.Candidate - 1) {
			f.Replace(f.Candidate - 2)
		}
	})
	if f.Candidate != 3 || f.Violation.Message != "3" || f.Shrinks != 9 {
		t.Errorf("got %d with %q after %d runs", f.Candidate, f.Violation.Message, f.Shrinks)
	}
}
