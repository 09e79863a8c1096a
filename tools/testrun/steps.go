// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// concurrent are the packages in which goroutines of ours run. They are tested with the race detector. The others run
// one goroutine at a time, and the race detector makes some of them ten times slower: it has a part of its own in the
// proofs that take longer.
var concurrent = []string{
	"./clusters", "./console", "./informer/...", "./internal/engine/...", "./internal/memapi/apiserver",
	"./observe/...", "./operator", "./plan/...", "./reconcilers", "./sandbox/...", "./shards/...", "./simple",
	"./stash", "./tracker",
}

// noVet are flags of go test for all steps: golangci-lint runs all of vet, once.
var noVet = []string{"-vet=off"}

// quick are the flags of the steps that everybody runs. A test that takes long for what it shows calls [testing.Short].
var quick = []string{"-short", "-vet=off"}

// everybody returns the steps of "make test". Those tests that need an API share one control plane. One test binary
// more than there are processors is linked or runs at a time, as many of them wait for that API half of the time.
func everybody() []step {
	more := []string{"-p", strconv.Itoa(runtime.NumCPU() + 1)}
	return []step{
		{
			name:     "packages with goroutines of their own, with the race detector",
			packages: concurrent, flags: slices.Concat([]string{"-race"}, more, quick),
		},
		{name: "all other packages", except: concurrent, flags: slices.Concat(more, quick)},
		{name: "traces with OpenTelemetry", module: "observe/otel", flags: quick},
		{
			name: "the cache in memcached, with the race detector", module: "informer/memcached",
			flags: append([]string{"-race"}, quick...),
		},
		{name: "graphs as SVG", module: "graph/svg", flags: quick},
		{name: "this command", module: "tools", packages: []string{"./testrun"}, flags: quick},
	}
}

// parts is the number of parts of the proofs that take longer. A part takes at most ten minutes on two processors.
const parts = 5

// longer returns the steps that "make test-all" adds: what proves more, and takes more time.
func longer() []step {
	return []step{
		{
			name:     "packages with goroutines of their own, with the race detector and with long tests",
			packages: concurrent, flags: append([]string{"-race"}, noVet...), part: 1,
		},
		{
			name:   "all other packages, with the race detector and with long tests",
			except: concurrent, flags: append([]string{"-race"}, noVet...), part: 2,
		},
		{
			name: "each command of docs/start.md, in a module outside of this repository", packages: []string{"./docs"},
			flags: append([]string{"-run", "^TestStart$"}, noVet...), env: []string{"TRUEUP_TEST_START=1"}, part: 3,
		},
		{name: "the control plane", module: "controlplane", flags: noVet, part: 3},
		{
			name: "the corpus of bugs, states, upgrades and recordings", module: "lab", part: 4,
			packages: []string{"./corpus/...", "./recordings/...", "./states/...", "./upgrades/..."}, flags: noVet,
		},
		{
			name: "the benchmarks' own tests, with the race detector", module: "lab", part: 4,
			packages: []string{"./benchmarks/..."}, flags: append([]string{"-race"}, noVet...),
		},
		{
			name:   "the API in memory compared with the real one, suites for envtest, alerts, filters and mutants",
			module: "lab", part: 5,
			except: []string{"./benchmarks/...", "./corpus/...", "./recordings/...", "./states/...", "./upgrades/..."},
			flags:  noVet,
		},
		{
			name: "public operators", module: "lab/operators", part: 5,
			packages: []string{".", "./certmanager", "./karpenter", "./trustmanager"}, flags: noVet,
		},
		{
			name: "traces with OpenTelemetry, with the race detector", module: "observe/otel", part: 5,
			flags: append([]string{"-race"}, noVet...),
		},
		{
			name: "the cache in memcached, with the race detector and with long tests", module: "informer/memcached", part: 5,
			flags: append([]string{"-race"}, noVet...),
		},
		{
			name: "all faults that converge tries by default, which are fewer with the race detector", part: 4,
			packages: []string{
				"./converge", "./internal/tests/convergence", "./examples/website/internal/controller",
				"./examples/database/internal/controller",
			},
			flags: noVet,
		},
		{
			name: "all interleavings of events, and the memory after a million objects", packages: []string{"./operator"},
			flags: append([]string{"-run", "^(TestSchedules|TestHeapIsFlat)$"}, noVet...), part: 5,
		},
		{
			name: "what converge finds in the corpus and in mutants", module: "lab", packages: []string{"./corpus"},
			flags: append([]string{"-run", "^TestReport$", "-timeout", "3h"}, noVet...), args: []string{"-corpus.report"},
		},
	}
}

// matching returns the steps with only the tests that match a pattern, as -run of go test takes it. A step that selects
// tests itself runs the ones that match, and is left out if none does.
func matching(steps []step, pattern string) ([]step, error) {
	// What follows a slash selects subtests.
	top, subtests, _ := strings.Cut(pattern, "/")
	names, err := regexp.Compile(top)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	var chosen []step
	for _, s := range steps {
		run := pattern
		if selected := s.tests(); selected != nil {
			selected = slices.DeleteFunc(selected, func(name string) bool { return !names.MatchString(name) })
			if len(selected) == 0 {
				continue
			}
			if run = "^(" + strings.Join(selected, "|") + ")$"; subtests != "" {
				run += "/" + subtests
			}
		}
		s.flags = append(slices.Clone(s.flags), "-run", run) // the last -run prevails
		chosen = append(chosen, s)
	}
	return chosen, nil
}

// tests returns the names of the tests that the step selects with -run, or nil if it runs all.
func (s step) tests() []string {
	at := slices.Index(s.flags, "-run")
	if at < 0 {
		return nil
	}
	return strings.Split(strings.Trim(s.flags[at+1], "^()$"), "|")
}

// stepsOf returns a step for each module that one of the packages belongs to.
func stepsOf(root string, packages []string) ([]step, error) {
	byModule := map[string][]string{}
	for _, pattern := range packages {
		if !strings.HasPrefix(pattern, "./") && pattern != "." {
			return nil, fmt.Errorf("packages must be relative to the root, such as ./tracker/..., got %q", pattern)
		}
		module, err := moduleOf(root, path.Clean(strings.TrimSuffix(pattern, "...")))
		if err != nil {
			return nil, err
		}
		within, err := filepath.Rel(filepath.FromSlash(module), filepath.FromSlash(pattern))
		if err != nil {
			return nil, err
		}
		byModule[module] = append(byModule[module], "./"+filepath.ToSlash(within))
	}
	var steps []step
	for module, packages := range byModule {
		s := step{name: strings.Join(packages, " "), module: module, packages: packages, flags: noVet}
		if module == "." {
			s.module, s.flags = "", append([]string{"-race"}, noVet...)
		} else {
			s.name += " in " + module
		}
		steps = append(steps, s)
	}
	slices.SortFunc(steps, func(a, b step) int { return strings.Compare(a.module, b.module) })
	return steps, nil
}

// moduleOf returns the innermost module that contains a directory.
func moduleOf(root, directory string) (string, error) {
	for module := directory; ; module = path.Dir(module) {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(module), "go.mod")); err == nil {
			return module, nil
		}
		if module == "." {
			return "", fmt.Errorf("%s belongs to no module", directory)
		}
	}
}
