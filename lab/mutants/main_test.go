// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module is a module with a package whose test misses one mutant, that another package kills.
var module = map[string]string{
	"go.mod": "module trueup.dev\n\ngo 1.26\n",
	"calc/calc.go": `package calc

func Max(a, b int) int {
	if a != b && a < b {
		return b
	}
	return a
}

func Unused() bool { return true }
`,
	"calc/calc_test.go": `package calc

import "testing"

func TestMax(t *testing.T) {
	if Max(1, 2) != 2 {
		t.Error("not the second")
	}
}
`,
	"user/user_test.go": `package user

import (
	"os"
	"testing"

	"trueup.dev/calc"
)

func TestUse(t *testing.T) {
	// What a test leaves must not be seen in the next run.
	if _, err := os.Stat("left"); err == nil {
		t.Fatal("left by an earlier run")
	}
	if err := os.WriteFile("left", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if calc.Max(2, 1) != 2 {
		t.Error("not the first")
	}
}
`,
}

const sampleOfModule = header +
	"calc/calc.go\tMax\tequal\t1\ta != b\t-\n" +
	"calc/calc.go\tMax\tlogic\t1\ta != b && a < b\t-\n" +
	"calc/calc.go\tMax\tbound\t1\ta < b\t-\n" +
	"calc/calc.go\tUnused\tother constant\t1\ttrue\t-\n"

func TestRun(t *testing.T) {
	dir := t.TempDir()
	for file, content := range module {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{
		"init --quiet", "add --all", "-c user.name=test -c user.email=test@trueup.dev commit --quiet --message test",
	} {
		if _, err := command(t.Context(), dir, "git", strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "sample.txt")
	s := settings{
		module: dir, sample: file, work: t.TempDir(), commit: "HEAD", count: 4, seed: 1, tests: "own,user", slow: "^$",
	}

	// All four points that are not in a condition are chosen, in an order that the seed decides.
	s.choose = "calc"
	if err := s.run(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	chosen, err := readSample(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(chosen) != 4 {
		t.Errorf("got %d mutants, want 4: %v", len(chosen), chosen)
	}

	if err := os.WriteFile(file, []byte(sampleOfModule), 0o600); err != nil {
		t.Fatal(err)
	}
	s.choose, s.update = "", true
	if err := s.run(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	sample, err := readSample(file)
	if err != nil {
		t.Fatal(err)
	}
	var killers []string
	for _, m := range sample {
		killers = append(killers, m.Killer)
	}
	// a < b and a <= b differ only if a == b, which the other condition excludes: an equivalent mutant.
	want := []string{"calc:TestMax", "user:TestUse", "", ""}
	if diff := cmp.Diff(want, killers); diff != "" {
		t.Fatalf("killers (-want +got):\n%s", diff)
	}

	s.update = false
	if err := s.run(t.Context(), t.Output()); err != nil {
		t.Errorf("the same tests again: %v", err)
	}
	sample[3].Killer = "calc:TestUnused"
	if err := writeSample(file, sample); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.run(t.Context(), t.Output()), "mutant 4 survives, but was killed by calc:TestUnused")
	sample[3].Text = "false"
	if err := writeSample(file, sample); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.run(t.Context(), t.Output()),
		"mutant 4 is not in the source: calc/calc.go Unused: other constant false")
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		output string
		want   []string
	}{
		"tests and a subtest that failed": {
			"=== RUN   TestA\n    a_test.go:1: no\n--- FAIL: TestA (0.00s)\n" +
				"    --- FAIL: TestA/b (0.00s)\n--- FAIL: TestC (0.1s)\n",
			[]string{"TestA", "TestC"},
		},
		"a time-out": {
			"=== RUN   TestA\npanic: test timed out after 32s\n\trunning tests:\n\t\tTestA/b (32s)\n",
			[]string{"TestA/b(time-out)"},
		},
		"the end of the process": {
			"=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n=== RUN   TestB/c\n" +
				"fatal error: all goroutines are asleep\n",
			[]string{"TestB(ended)"},
		},
		"no test": {"panic: in a package-level variable\n", []string{"(did not start)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, failures([]byte(tc.output))); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}
