// SPDX-License-Identifier: Apache-2.0

package mutation_test

import (
	"testing"

	"trueup.dev/converge"
	"trueup.dev/lab/corpus"
	"trueup.dev/lab/corpus/mutation"
)

// every is the sampling interval of entries, with one mutant each. The report of the corpus tries all mutants.
const every = 5

// TestSample tries few schedules, so it does not find all mutants that a default run finds.
func TestSample(t *testing.T) {
	killed, open := 0, 0
	for i, e := range corpus.All() {
		if i%every != 0 {
			continue
		}
		mutants, err := mutation.Of(t, e)
		if err != nil {
			t.Error(err)
			continue
		}
		m := mutants[i%len(mutants)]
		t.Run(m.Name(), func(t *testing.T) {
			result, err := m.Check(t, converge.Options{Seed: 1, Recoveries: 50, Pairs: 50})
			if err != nil {
				t.Fatal(err)
			}
			reason, known := mutation.Reasons[m.Name()]
			switch {
			case result.Killed && known:
				t.Errorf("%s finds it, but it has a reason not to be found: %s", result.By, reason.Why)
			case result.Killed:
				killed++
				t.Logf("%s, %d faults", result.By, result.Faults)
			case !result.Equivalent && !known:
				open++
				t.Log("it was not found")
			}
		})
	}
	if killed < 8 || 4*killed < 3*(killed+open) {
		t.Errorf("%d mutants were found, and %d were not that should be", killed, open)
	}
}
