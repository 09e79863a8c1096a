// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Result is the outcome of a scenario.
type Result struct {
	// Directory and Test locate the test.
	Directory, Test             string
	Module, Version, Controller string
	// Lines is the length of the test without its fakes.
	Lines int
	// Points is the number of injection points without faults, and Schedules that of runs with faults.
	Points, Schedules int
	// Seconds is the duration of the search when it was recorded.
	Seconds float64
	// Finding has the oracle and the cause of the violation. It is empty for a certificate.
	Finding, Observed, Server, Issue, Replay string `json:",omitempty"`
	// LeftOut lists what was not checked or not tried, with the reasons.
	LeftOut []string `json:",omitempty"`
}

// inModule returns the path of a file of this module.
func inModule(elements ...string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(file)}, elements...)...)
}

// Read returns the recorded results.
func Read() ([]Result, error) {
	content, err := os.ReadFile(inModule("results.json"))
	if err != nil {
		return nil, err
	}
	var results []Result
	return results, json.Unmarshal(content, &results)
}

// record compares a result with the recorded one, or replaces it.
func record(got Result, update bool) error {
	results, err := Read()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(results, func(r Result) bool { return r.Directory == got.Directory && r.Test == got.Test })
	if !update {
		switch {
		case at < 0:
			return fmt.Errorf("results.json does not have %s: run with -update", got.Test)
		case results[at].Version != got.Version, results[at].Finding != got.Finding, results[at].Observed != got.Observed:
			return fmt.Errorf("results.json has another outcome of %s: run with -update", got.Test)
		}
		return nil
	}
	got.Seconds = float64(int(got.Seconds*10+0.5)) / 10
	if at >= 0 {
		results[at] = got
	} else {
		results = append(results, got)
	}
	slices.SortFunc(results, Compare)
	content, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(inModule("results.json"), append(content, '\n'), 0o600)
}

// Compare orders results by module, controller and test.
func Compare(a, b Result) int {
	return strings.Compare(a.Module+" "+a.Controller+" "+a.Test, b.Module+" "+b.Controller+" "+b.Test)
}
