// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module writes a module without dependencies and returns its directory.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	files["go.mod"] = "module example.com/m\n\ngo 1.26\n"
	for name, content := range files {
		file := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestStep_run(t *testing.T) {
	const (
		passes = "package p\n\nimport \"testing\"\n\nfunc TestPasses(t *testing.T) { t.Log(\"not shown\") }\n"
		fails  = "package p\n\nimport \"testing\"\n\nfunc TestFails(t *testing.T) { t.Error(\"the reason\") }\n"
		panics = "package p\n\nimport \"testing\"\n\nfunc TestPanics(t *testing.T) { panic(\"the value\") }\n"
		broken = "package p\n\nfunc TestBroken(t *testing.T) {}\n"
	)
	tests := map[string]struct {
		files        map[string]string
		except       []string
		shown        []string
		notShown     []string
		wantPackages []string
		wantFailure  bool
	}{
		"passes": {
			files:        map[string]string{"a/a_test.go": passes, "b/b_test.go": passes},
			wantPackages: []string{"example.com/m/a", "example.com/m/b"},
			shown:        []string{"ok  \texample.com/m/a", "DONE 2 tests"}, notShown: []string{"not shown"},
		},
		"fails, and the other packages run": {
			files:        map[string]string{"a/a_test.go": fails, "b/b_test.go": passes},
			wantPackages: []string{"example.com/m/a", "example.com/m/b"},
			shown:        []string{"a_test.go:5: the reason", "FAIL\texample.com/m/a", "ok  \texample.com/m/b"},
			wantFailure:  true,
		},
		"panics": {
			files: map[string]string{"a/a_test.go": panics}, wantPackages: []string{"example.com/m/a"},
			shown: []string{"panic: the value"}, wantFailure: true,
		},
		"does not compile": {
			files:        map[string]string{"a/a_test.go": broken, "b/b_test.go": passes},
			wantPackages: []string{"example.com/m/a", "example.com/m/b"},
			shown:        []string{"undefined: testing", "ok  \texample.com/m/b"}, wantFailure: true,
		},
		"without some packages": {
			files: map[string]string{"a/a_test.go": fails, "b/b_test.go": passes}, except: []string{"./a/..."},
			wantPackages: []string{"example.com/m/b"},
			shown:        []string{"ok  \texample.com/m/b"}, notShown: []string{"the reason"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := step{name: "s", except: tc.except, flags: []string{"-vet=off"}}
			last := durations{"example.com/m/b": 1}
			result, packages, err := s.run(t.Context(), module(t, tc.files), "", last, &out, io.Discard)
			if got := errors.Is(err, errTests); got != tc.wantFailure || err != nil && !got {
				t.Errorf("want a failure of tests: %v, got %v", tc.wantFailure, err)
			}
			if result.wall <= 0 || result.cpu <= 0 {
				t.Errorf("got no times: %+v", result)
			}
			var names []string
			for _, p := range packages {
				names = append(names, p.name)
			}
			if diff := cmp.Diff(tc.wantPackages, names); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
			for _, text := range tc.shown {
				if !strings.Contains(out.String(), text) {
					t.Errorf("the output does not contain %q:\n%s", text, out.String())
				}
			}
			for _, text := range tc.notShown {
				if strings.Contains(out.String(), text) {
					t.Errorf("the output contains %q:\n%s", text, out.String())
				}
			}
		})
	}
}
