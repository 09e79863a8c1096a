// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"testing"

	"trueup.dev/converge/internal/inject"
)

// TestSingleFaultsAreInjected injects each fault at each point: each fault that is counted was injected.
func TestSingleFaultsAreInjected(t *testing.T) {
	for name, s := range map[string]Scenario{
		"direct": copierScenario(false), "controller": controllerScenario(false), "faulty": faultyScenario(),
	} {
		t.Run(name, func(t *testing.T) {
			p, reference := referred(t, s)
			singles := inject.CandidatesOf(reference.Points)
			if len(singles) < 50 {
				t.Fatalf("only %d faults", len(singles))
			}
			missed := 0
			for _, d := range singles {
				if o := p.execute(t, inject.Schedule{d}, p.usual(), nil); o.Injected != 1 {
					missed++
					t.Logf("%s was injected %d times", d, o.Injected)
				}
			}
			if missed > 0 {
				t.Errorf("%d of %d faults were not injected", missed, len(singles))
			}
		})
	}
}
