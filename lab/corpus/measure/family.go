// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"trueup.dev/converge"
	"trueup.dev/lab/states"
	"trueup.dev/lab/upgrades"
)

// Pair is the result for a bug and its twin without the bug, which another function of package converge searches.
type Pair struct {
	// Family is the kind of the bug.
	Family string `json:"family"`
	Entry  string `json:"entry"`
	Found  bool   `json:"found"`
	// Alarm is what was reported about the twin.
	Alarm string `json:"alarm,omitempty"`
	// Seconds is the longer duration of both searches.
	Seconds float64 `json:"seconds"`
}

// The families of pairs.
const (
	statesFamily   = "changes of specs"
	upgradesFamily = "upgrades and rollbacks"
)

// Pairs searches for the bugs of all families.
func Pairs(t *testing.T) ([]Pair, error) {
	var pairs []Pair
	for _, e := range states.All() {
		pair, err := pairOf(func(buggy bool) (string, error) {
			report, err := converge.CheckStates(t, e.Scenario(buggy), converge.DefaultStatesOptions())
			switch {
			case err != nil:
				return "", err
			case report.Failure != nil:
				return report.Failure.Violation.String(), nil
			case e.Oracle == "": // it is advice
				return strings.Join(report.Certificate.Advice, "; "), nil
			}
			return "", nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		pair.Family, pair.Entry = statesFamily, e.Name
		pairs = append(pairs, pair)
	}
	for _, e := range upgrades.All() {
		pair, err := pairOf(func(buggy bool) (string, error) {
			old, current := e.Scenarios(buggy)
			report, err := converge.CheckUpgrade(t, old, current, Default())
			if err != nil || report.Failure == nil {
				return "", err
			}
			return report.Failure.Violation.String(), nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		pair.Family, pair.Entry = upgradesFamily, e.Name
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

// pairOf searches for a bug and in its twin. The search returns the failure, or "".
func pairOf(search func(buggy bool) (string, error)) (Pair, error) {
	begin := time.Now()
	failure, err := search(true)
	if err != nil {
		return Pair{}, err
	}
	middle := time.Now()
	alarm, err := search(false)
	took := max(middle.Sub(begin), time.Since(middle))
	return Pair{Found: failure != "", Alarm: alarm, Seconds: took.Seconds()}, err
}

// judgePairs judges each family.
func (r *Report) judgePairs() {
	var families []string
	for _, p := range r.Pairs {
		if !slices.Contains(families, p.Family) {
			families = append(families, p.Family)
		}
	}
	for _, family := range families {
		all, found, alarms, slowest := 0, 0, 0, 0.0
		for _, p := range r.Pairs {
			if p.Family != family {
				continue
			}
			all++
			slowest = max(slowest, p.Seconds)
			if p.Found {
				found++
			}
			if p.Alarm != "" {
				alarms++
			}
		}
		r.bar(family+": bugs found, and false alarms for their twins", "≥ 95 % in ≤ 10 s each, 0",
			100*found >= 95*all && alarms == 0 && slowest <= 10, "%d of %d in at most %.1f s, %d", found, all, slowest, alarms)
	}
}

// Operators are the recorded results of public operators.
type Operators struct {
	Modules      int `json:"modules"`
	Controllers  int `json:"controllers"`
	Certificates int `json:"certificates"`
}

// ReadOperators counts the results in a file of the module of public operators.
func ReadOperators(file string) (Operators, error) {
	encoded, err := os.ReadFile(file)
	if err != nil {
		return Operators{}, err
	}
	var results []struct{ Module, Finding string }
	if err := json.Unmarshal(encoded, &results); err != nil {
		return Operators{}, fmt.Errorf("%s: %w", file, err)
	}
	o := Operators{Controllers: len(results)}
	modules := map[string]bool{}
	for _, result := range results {
		modules[result.Module] = true
		if result.Finding == "" {
			o.Certificates++
		}
	}
	o.Modules = len(modules)
	return o, nil
}
