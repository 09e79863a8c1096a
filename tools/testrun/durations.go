// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// durations are the wall times of the last complete run of each step and of each package, in seconds. They are kept in
// the user's cache directory. That they cannot be read or written fails nothing: they are shown, and order packages.
type durations map[string]float64

// usual are the packages that take longest, for the order of the first run on a machine. It compiles everything, and
// the tests of these packages wait for the API meanwhile.
var usual = durations{
	"trueup.dev/internal/tests/integration": 140, "trueup.dev/converge": 120, "trueup.dev/internal/tests/convergence": 60,
	"trueup.dev/reconcilers": 55, "trueup.dev/cmd/trueup": 55, "trueup.dev/docs": 45, "trueup.dev/sandbox": 40,
	"trueup.dev/examples/website/internal/controller": 35, "trueup.dev/simple": 35, "trueup.dev/clusters": 30,
	"trueup.dev/operator": 30,
}

func durationsFile() (string, error) {
	directory, err := os.UserCacheDir()
	return filepath.Join(directory, "trueup", "test-durations.json"), err
}

func readDurations() durations {
	d := maps.Clone(usual)
	file, err := durationsFile()
	if err != nil {
		return d
	}
	if content, err := os.ReadFile(file); err == nil && json.Unmarshal(content, &d) != nil {
		return maps.Clone(usual)
	}
	return d
}

// of returns the time of a step as it is appended to the name of the step.
func (d durations) of(step string) string {
	last, ok := d[step]
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (last time %s)", time.Duration(last*float64(time.Second)).Round(time.Second))
}

func (d durations) save() {
	file, err := durationsFile()
	if err != nil {
		return
	}
	content, err := json.MarshalIndent(d, "", "  ")
	if err == nil && os.MkdirAll(filepath.Dir(file), 0o700) == nil {
		_ = os.WriteFile(file, content, 0o600)
	}
}
