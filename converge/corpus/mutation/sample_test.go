// SPDX-License-Identifier: Apache-2.0

package mutation_test

import (
	"testing"

	"trueup.dev/converge"
	"trueup.dev/converge/corpus"
	"trueup.dev/converge/corpus/mutation"
)

// every is of how many entries one is in the sample, with one mutant. The report of the corpus tries all mutants.
const every = 5

func TestSample(t *testing.T) {
	killed := 0
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
			reason, known := mutation.Survivors[m.Name()]
			switch {
			case result.Killed:
				killed++
				t.Logf("%s, %d faults", result.By, result.Faults)
				if known {
					t.Errorf("it is found, and was said not to be: %s", reason.Why)
				}
			case !result.Equivalent && !known:
				t.Error("it is not found, and there is no reason for that")
			}
		})
	}
	if killed < 8 {
		t.Errorf("only %d mutants are found", killed)
	}
}
