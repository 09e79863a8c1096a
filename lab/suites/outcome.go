// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// outcome is what a suite does in a mode.
type outcome struct {
	// Specs is the number of specs that run.
	Specs   int `json:"specs"`
	Pending int `json:"pending,omitempty"`
	Skipped int `json:"skipped,omitempty"`

	// Failed lists the specs that fail, in groups with the same reason.
	Failed []failures `json:"failed,omitempty"`
}

type failures struct {
	Reason string `json:"reason"`
	// Race reports whether the specs sometimes pass.
	Race  bool     `json:"race,omitempty"`
	Specs []string `json:"specs"`
}

// outcomes maps the name of a suite to its outcome.
type outcomes map[string]outcome

func readOutcomes(file string) (outcomes, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return outcomes{}, nil
	}
	if err != nil {
		return nil, err
	}
	read := outcomes{}
	if err := yaml.UnmarshalStrict(content, &read); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return read, nil
}

func (o outcomes) write(file string) error {
	content, err := yaml.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644) //nolint:gosec // a file of the repository
}

// summarize counts specs, and returns the messages of those that fail by name.
func summarize(specs []spec) (o outcome, failed map[string]string) {
	failed = map[string]string{}
	for _, s := range specs {
		if failedState(s.State) {
			at := s.Failure.Location
			failed[s.name()] = fmt.Sprintf("%s:%d: %s", at.FileName, at.LineNumber, s.Failure.Message)
		}
		switch {
		case s.LeafNodeType != "It":
		case s.State == "pending":
			o.Pending++
		case s.State == "skipped":
			o.Skipped++
		default:
			o.Specs++
		}
	}
	return o, failed
}

// problems returns how a run differs from the outcome that is expected.
func (o outcome) problems(got outcome, failed map[string]string) []string {
	var problems []string
	if o.Specs != got.Specs || o.Pending != got.Pending || o.Skipped != got.Skipped {
		problems = append(problems, fmt.Sprintf(
			"%d specs, %d pending and %d skipped, want %d, %d and %d",
			got.Specs, got.Pending, got.Skipped, o.Specs, o.Pending, o.Skipped,
		))
	}
	listed := map[string]bool{}
	for _, f := range o.Failed {
		for _, name := range f.Specs {
			listed[name] = true
			if _, fails := failed[name]; !fails && !f.Race {
				problems = append(problems, "passes although it is listed as failing: "+name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		if !listed[name] {
			problems = append(problems, "fails: "+name+"\n"+failed[name])
		}
	}
	return problems
}

// merge returns the outcome of a run with the reasons that o has. Failures without a reason come last.
func (o outcome) merge(got outcome, failed map[string]string) outcome {
	failed = maps.Clone(failed)
	for _, f := range o.Failed {
		f.Specs = slices.DeleteFunc(slices.Clone(f.Specs), func(name string) bool {
			_, fails := failed[name]
			delete(failed, name)
			return !fails && !f.Race
		})
		if len(f.Specs) > 0 {
			got.Failed = append(got.Failed, f)
		}
	}
	if len(failed) > 0 {
		got.Failed = append(got.Failed, failures{Specs: slices.Sorted(maps.Keys(failed))})
	}
	return got
}
