// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"math/rand/v2"
	"slices"
	"testing"

	"trueup.dev/converge/internal/inject"
)

// TestSingleFaultsAreInjected injects each fault at each point: each fault that is counted was injected.
func TestSingleFaultsAreInjected(t *testing.T) {
	for name, s := range map[string]Scenario{
		"direct": copierScenario(false), "controller": controllerScenario(false), "faulty": faultyScenario(),
	} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, s)
			reference, ok := p.refer(t)
			if !ok {
				t.Fatal(reference.violations)
			}
			singles := inject.CandidatesOf(reference.points)
			if len(singles) < 50 {
				t.Fatalf("only %d faults", len(singles))
			}
			missed := 0
			for _, d := range singles {
				if o := p.execute(t, inject.Schedule{d}, p.usual(), nil); o.injected != 1 {
					missed++
					t.Logf("%s was injected %d times", d, o.injected)
				}
			}
			if missed > 0 {
				t.Errorf("%d of %d faults were not injected", missed, len(singles))
			}
		})
	}
}

// TestMixedPairs checks that mixed returns each pair once, and not in order.
func TestMixedPairs(t *testing.T) {
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
				t.Errorf("of %d, seed %d: the pairs are in order", of, seed)
			}
		}
	}
}
