// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// TestSteps_runTests finds steps that select tests by a name that no longer exists: go test succeeds if no name
// matches.
func TestSteps_runTests(t *testing.T) {
	for _, s := range append(everybody(), longer()...) {
		for _, name := range s.tests() {
			p := s.packages[0]
			declaration := regexp.MustCompile(`(?m)^func ` + name + `\(`)
			files, err := filepath.Glob(filepath.Join(root, s.module, p, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(files, func(file string) bool {
				content, err := os.ReadFile(file)
				return err == nil && declaration.Match(content)
			}) {
				t.Errorf("step %q runs %s in %s, which does not exist", s.name, name, p)
			}
		}
	}
}

// TestSteps_coverModules checks that the tests of each module run.
func TestSteps_coverModules(t *testing.T) {
	var modules, tested []string
	for _, pattern := range []string{"go.mod", "*/go.mod", "*/*/go.mod"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			module, err := filepath.Rel(root, filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			modules = append(modules, filepath.ToSlash(module))
		}
	}
	for _, s := range append(everybody(), longer()...) {
		tested = append(tested, s.directory())
	}
	slices.Sort(modules)
	slices.Sort(tested)
	if diff := cmp.Diff(modules, slices.Compact(tested)); diff != "" {
		t.Errorf("modules that a step tests (-want +got):\n%s", diff)
	}
}

// TestSteps_parts checks that the parts together are all that takes longer, but for what runs only every night.
func TestSteps_parts(t *testing.T) {
	names := map[string]bool{}
	sizes := make([]int, parts+1)
	for _, s := range longer() {
		if names[s.name] {
			t.Errorf("two steps have the name %q, by which their durations are kept", s.name)
		}
		names[s.name] = true
		if s.part < 0 || s.part > parts {
			t.Errorf("step %q is in part %d of %d", s.name, s.part, parts)
			continue
		}
		sizes[s.part]++
	}
	if i := slices.Index(sizes[1:], 0); i >= 0 {
		t.Errorf("part %d has no steps", i+1)
	}
}

// A pattern of the user selects among the tests of a step, and does not replace the choice of the step.
func TestMatching(t *testing.T) {
	steps := []step{
		{name: "all", flags: []string{"-short"}},
		{name: "two", flags: []string{"-run", "^(TestOne|TestTwo)$", "-timeout", "3h"}},
	}
	tests := map[string]struct {
		want      map[string]string
		wantError string
	}{
		"^TestOne$":     {want: map[string]string{"all": "^TestOne$", "two": "^(TestOne)$"}},
		"TestO|TestT":   {want: map[string]string{"all": "TestO|TestT", "two": "^(TestOne|TestTwo)$"}},
		"TestTwo/a/b":   {want: map[string]string{"all": "TestTwo/a/b", "two": "^(TestTwo)$/a/b"}},
		"TestSomething": {want: map[string]string{"all": "TestSomething"}},
		"(":             {wantError: "-run: error parsing regexp"},
	}
	for pattern, tc := range tests {
		t.Run(pattern, func(t *testing.T) {
			chosen, err := matching(steps, pattern)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error %v does not contain %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, s := range chosen {
				got[s.name] = s.flags[len(s.flags)-1]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-run of each step (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"-short"}, steps[0].flags); diff != "" {
		t.Errorf("flags of the given step (-want +got):\n%s", diff)
	}
}

func TestStepsOf(t *testing.T) {
	tests := map[string]struct {
		packages  []string
		want      []string
		wantError string
	}{
		"packages of the root module, with the race detector": {
			packages: []string{"./tracker/...", "./stash"},
			want:     []string{". -race ./tracker/... ./stash"},
		},
		"each module has a step of its own": {
			packages: []string{"./lab/operators/karpenter", "./tracker", "./lab/corpus/...", "./controlplane/..."},
			want: []string{
				". -race ./tracker", "controlplane ./...", "lab ./corpus/...", "lab/operators ./karpenter",
			},
		},
		"the root of a module": {packages: []string{"./lab/operators"}, want: []string{"lab/operators ./."}},
		"an import path":       {packages: []string{"trueup.dev/tracker"}, wantError: "must be relative"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			steps, err := stepsOf(root, tc.packages)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Fatalf("error %v does not contain %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range steps {
				words := slices.Concat([]string{s.directory()}, s.flags, s.packages)
				words = slices.DeleteFunc(words, func(word string) bool { return word == "-vet=off" })
				got = append(got, strings.Join(words, " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDurations(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if got := readDurations().of("a"); got != "" {
		t.Errorf("a step that never ran took %q", got)
	}
	durations{"a": 90.4}.save()
	if got, want := readDurations().of("a"), " (last time 1m30s)"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
