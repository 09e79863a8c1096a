// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// concurrent are the packages in which goroutines of ours run. They are tested with the race detector. The others run
// one goroutine at a time, and the race detector makes some of them ten times slower: it has a part of its own in the
// proofs that take longer.
var concurrent = []string{
	"./console", "./informer/...", "./internal/guard", "./internal/hotloop", "./internal/memapi/apiserver",
	"./internal/step", "./observe/...", "./operator", "./plan/...", "./reconcilers", "./sandbox/...", "./simple", "./stash",
	"./tracker",
}

// quick are flags of go test. golangci-lint runs all of vet, once. Many packages wait for an API, therefore one more
// test binary than processors runs at the same time. Those that need an API share one control plane.
var quick = []string{"-vet=off"}

// everybody returns the steps of "make test".
func everybody() []step {
	return []step{
		{
			name:     "packages with goroutines of their own, with the race detector",
			packages: concurrent, flags: append([]string{"-race"}, quick...),
		},
		{name: "all other packages", except: concurrent, flags: quick},
		{name: "traces with OpenTelemetry", module: "observe/otel", flags: quick},
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
			name:   "the other packages with the race detector",
			except: concurrent, flags: append([]string{"-race"}, quick...), part: 1,
		},
		{
			name: "each command of docs/start.md, in a module outside of this repository", packages: []string{"./docs"},
			flags: append([]string{"-run", "^TestStart$"}, quick...), env: []string{"TRUEUP_TEST_START=1"}, part: 2,
		},
		{name: "the control plane", module: "controlplane", flags: quick, part: 2},
		{
			name: "all interleavings of events, and the memory after a million objects", packages: []string{"./operator"},
			flags: append([]string{"-run", "^(TestSchedules|TestHeapIsFlat)$"}, quick...), part: 5,
		},
		{
			name: "the corpus of bugs, states, upgrades and recordings", module: "lab", part: 3,
			packages: []string{"./corpus/...", "./recordings/...", "./states/...", "./upgrades/..."}, flags: quick,
		},
		{
			name: "the benchmarks' own tests, with the race detector", module: "lab", part: 4,
			packages: []string{"./benchmarks/..."}, flags: append([]string{"-race"}, quick...),
		},
		{
			name: "the API in memory compared with the real one, suites for envtest, alerts and filters", module: "lab", part: 4,
			except: []string{"./benchmarks/...", "./corpus/...", "./recordings/...", "./states/...", "./upgrades/..."},
			flags:  quick,
		},
		{
			name: "public operators", module: "lab/operators", part: 5,
			packages: []string{".", "./certmanager", "./karpenter", "./trustmanager"}, flags: quick,
		},
		{
			name: "traces with OpenTelemetry, with the race detector", module: "observe/otel", part: 5,
			flags: append([]string{"-race"}, quick...),
		},
		{
			name: "what converge finds in the corpus and in mutants", module: "lab", packages: []string{"./corpus"},
			flags: append([]string{"-run", "^TestReport$", "-timeout", "3h"}, quick...), args: []string{"-corpus.report"},
		},
	}
}

// stepsOf returns a step for each module that one of the packages belongs to.
func stepsOf(root string, packages []string) ([]step, error) {
	byModule := map[string][]string{}
	for _, pattern := range packages {
		if !strings.HasPrefix(pattern, "./") && pattern != "." {
			return nil, fmt.Errorf("packages must be relative to the root of the repository, such as ./tracker/..., got %q", pattern)
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
		s := step{name: strings.Join(packages, " "), module: module, packages: packages, flags: quick}
		if module == "." {
			s.module, s.flags = "", append([]string{"-race"}, quick...)
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
