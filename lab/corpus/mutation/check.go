// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/internal/memapi/kinds"
)

// Result is the result of a mutant.
type Result struct {
	Name string `json:"name"`
	// Killed reports whether a failure was found.
	Killed bool `json:"killed,omitempty"`
	// By describes what found it, and Faults is the number of faults that this needed.
	By     string `json:"by,omitempty"`
	Faults int    `json:"faults,omitempty"`
	// Equivalent reports whether a surviving mutant did, in all runs, nothing that the correct reconciler would not
	// have done.
	Equivalent bool `json:"equivalent,omitempty"`
	// Later describes what found a surviving, not equivalent mutant in a longer search.
	Later string `json:"later,omitempty"`
}

// Check searches for a failure of the mutant, first in the runs without faults: these must reach the state of the
// correct reconciler, unless the scenario defines the desired state.
func (m Mutant) Check(t *testing.T, o converge.Options) (Result, error) {
	result := Result{Name: m.Name()}
	felt := &effects{}
	violation, err := probe(t, m.scenario(felt), m.compare)
	if err != nil {
		return result, err
	}
	if violation != nil {
		result.Killed, result.By = true, string(violation.Oracle)
		return result, nil
	}
	report, err := converge.Check(t, m.scenario(felt), o)
	if err != nil {
		return result, err
	}
	if report.Failure == nil {
		result.Equivalent = !felt.felt.Load()
		return result, nil
	}
	result.Killed, result.By, result.Faults = true, string(report.Failure.Violation.Oracle), len(report.Failure.Faults)
	return result, nil
}

// Examine searches longer for a failure of a surviving mutant.
func (m Mutant) Examine(t *testing.T, result *Result, o converge.Options) error {
	report, err := converge.Check(t, m.scenario(&effects{}), o)
	if err == nil && report.Failure != nil {
		result.Later = fmt.Sprintf("%s, with %d faults", report.Failure.Violation.Oracle, len(report.Failure.Faults))
	}
	return err
}

// scenario returns the scenario of the correct reconciler, with the mistake.
func (m Mutant) scenario(felt *effects) converge.Scenario {
	s := m.Entry.Correct()
	insists := false
	if registry, err := kinds.NewRegistry(s.Scheme); err == nil {
		for gvk := range m.twin.kinds {
			if kind, ok := registry.For(gvk); ok && (m.Kind == gvk.Kind || m.Kind == gvk.Kind+"/status") {
				insists = !kind.UnconditionalUpdate
			}
		}
	}
	return intercept(s, func(_ client.Client, live client.Reader) interceptor {
		return &mutator{Site: m.Site, Mistake: m.Mistake, live: live, insists: insists, effects: felt}
	})
}

// compare compares a state with the state of the correct reconciler.
func (m Mutant) compare(run, settle int, there converge.State) error {
	if run != 2 || settle >= len(m.twin.states) {
		return nil
	}
	found := stateOf(there, slices.Collect(maps.Keys(m.twin.kinds)))
	if difference := found.difference(m.twin.states[settle], m.twin.others[settle]); difference != "" {
		return errors.New(difference)
	}
	return nil
}
