// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"context"
	"errors"
	"flag"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"trueup.dev/sandbox"
)

var (
	all    = flag.Bool("suites.all", false, "run all suites in all modes, which takes 15 minutes")
	update = flag.Bool("update", false, "write the outcomes of the suites that run into testdata")
)

// quick are the suites that the test runs without -suites.all.
var quick = []string{"builder", "client"}

// A mode prepares a control plane for a suite.
type mode struct {
	name     string
	suites   []string
	attempts int // of a spec
	// prepare returns environment variables for the suite, and a function for its end.
	prepare func(ctx context.Context) (environment []string, stop func() error, err error)
}

var modes = []mode{
	{"bare", names, 2, func(ctx context.Context) ([]string, func() error, error) {
		assets, err := sandbox.EnvtestAssets(ctx, sandbox.Options{})
		return []string{"KUBEBUILDER_ASSETS=" + assets}, func() error { return nil }, err
	}},
	{"default", onExisting, 1, func(ctx context.Context) ([]string, func() error, error) {
		s, err := sandbox.Start(ctx, sandbox.Options{})
		if err != nil {
			return nil, nil, err
		}
		return []string{"USE_EXISTING_CLUSTER=true", "KUBECONFIG=" + s.KubeconfigPath()}, s.Stop, nil
	}},
}

func TestSuites(t *testing.T) {
	binaries := t.TempDir()
	suites := map[string]func() (*suite, error){}
	for _, name := range names {
		if *all || slices.Contains(quick, name) {
			suites[name] = sync.OnceValues(func() (*suite, error) { return build(context.Background(), name, binaries) })
		}
	}
	for _, m := range modes {
		if *all || m.name == "bare" {
			t.Run(m.name, func(t *testing.T) { testMode(t, m, suites) })
		}
	}
}

func testMode(t *testing.T, m mode, suites map[string]func() (*suite, error)) {
	file := filepath.Join("testdata", m.name+".yaml")
	expected, err := readOutcomes(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range m.suites {
		built, ok := suites[name]
		if !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s, err := built()
			if err != nil {
				t.Fatal(err)
			}
			environment, stop, err := m.prepare(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			specs, err := s.run(t.Context(), m.attempts, environment...)
			if err := errors.Join(err, stop()); err != nil {
				t.Fatal(err)
			}
			got, failed := summarize(specs)
			t.Logf("%d specs, %d of them fail", got.Specs, len(failed))
			problems := expected[name].problems(got, failed)
			if !*update {
				for _, problem := range problems {
					t.Errorf("%s: %s", file, problem)
				}
				return
			}
			for _, problem := range problems {
				t.Log(problem)
			}
			expected[name] = expected[name].merge(got, failed)
			if err := expected.write(file); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Without these lists, the test could pass although it runs nothing.
func TestExpectations(t *testing.T) {
	for _, m := range modes {
		file := filepath.Join("testdata", m.name+".yaml")
		expected, err := readOutcomes(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range m.suites {
			if expected[name].Specs == 0 {
				t.Errorf("%s: no specs of the suite %s", file, name)
			}
			for _, f := range expected[name].Failed {
				if f.Reason == "" || len(f.Specs) == 0 {
					t.Errorf("%s: suite %s: a reason and specs are required: %+v", file, name, f)
				}
			}
		}
	}
}
