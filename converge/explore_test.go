// SPDX-License-Identifier: Apache-2.0

package converge

import "testing"

// TestEachSingleFaultComesTrue runs each fault at each point: none of them is counted without having happened.
func TestEachSingleFaultComesTrue(t *testing.T) {
	for name, s := range map[string]Scenario{"direct": copierScenario(false), "controller": controllerScenario(false), "faulty": faultyScenario()} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, s)
			reference, ok := p.refer(t)
			if !ok {
				t.Fatal(reference.violations)
			}
			singles := candidatesOf(reference.met)
			if len(singles) < 50 {
				t.Fatalf("only %d faults", len(singles))
			}
			missed := 0
			for _, d := range singles {
				if o := p.execute(t, schedule{d}, p.usual(), nil); o.hit != 1 {
					missed++
					t.Logf("%s has come true %d times", d, o.hit)
				}
			}
			if missed > 0 {
				t.Errorf("%d of %d faults have not come true", missed, len(singles))
			}
		})
	}
}
