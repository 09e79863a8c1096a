// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEachSingleFaultComesTrue runs each fault at each point: none of them is counted without having happened.
func TestEachSingleFaultComesTrue(t *testing.T) {
	for name, s := range map[string]Scenario{
		"direct": copierScenario(false), "controller": controllerScenario(false), "faulty": faultyScenario(),
	} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, s)
			reference, ok := p.refer(t)
			if !ok {
				t.Fatal(reference.violations)
			}
			singles := candidatesOf(reference.points)
			if len(singles) < 50 {
				t.Fatalf("only %d faults", len(singles))
			}
			missed := 0
			for _, d := range singles {
				if o := p.execute(t, schedule{d}, p.usual(), nil); o.injected != 1 {
					missed++
					t.Logf("%s has come true %d times", d, o.injected)
				}
			}
			if missed > 0 {
				t.Errorf("%d of %d faults have not come true", missed, len(singles))
			}
		})
	}
}

// TestPairsWithoutAList goes through all pairs, each of them once, from one end to the other and not in their order.
func TestPairsWithoutAList(t *testing.T) {
	for _, of := range []int{2, 3, 4, 7, 40, 200} {
		n := of * (of - 1) / 2
		for seed := range uint64(3) {
			next := mixed(n, rand.New(rand.NewPCG(seed, 1)))
			seen := map[[2]int]bool{}
			var order []int
			for range n {
				at := next()
				order = append(order, at)
				pair := pairOf(at)
				if pair[0] < 0 || pair[0] >= pair[1] || pair[1] >= of || seen[pair] {
					t.Fatalf("of %d, seed %d: the pair %v, after %d others", of, seed, pair, len(seen))
				}
				seen[pair] = true
			}
			if n > 10 && slices.IsSorted(order) {
				t.Errorf("of %d, seed %d: they are in their order", of, seed)
			}
		}
	}
}
