// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What authors read when a case fails is part of what the kit is. Each function below is a test that fails; what it
// prints is in testdata/failures/<name>.txt. `go test -run TestFailures -update ./testing` writes those files: read
// them as a user who is new to the kit.

var update = flag.Bool("update", false, "write what failing cases print to testdata/failures")

// failures are the tests that fail, by the name of the file.
func failures() map[string]func(t *testing.T) {
	all := map[string]func(t *testing.T){}
	for _, some := range []map[string]func(t *testing.T){
		listFailures, caseFailures, subCaseFailures, webhookFailures, suiteFailures,
	} {
		maps.Copy(all, some)
	}
	return all
}

const failuresEnv = "TRUEUP_TESTING_FAILURES"

// TestFailing fails by design. TestFailures runs it in a process of its own.
func TestFailing(t *testing.T) {
	if os.Getenv(failuresEnv) == "" {
		t.Skip("run by TestFailures")
	}
	all := failures()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, all[name])
	}
}

func TestFailures(t *testing.T) {
	printed := runFailing(t)
	all := failures()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "failures", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(printed[name]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.SplitAfter(string(want), "\n"), strings.SplitAfter(printed[name], "\n")); diff != "" {
				t.Errorf("the failing test prints something else; with -update it is accepted (-want +got):\n%s", diff)
			}
			if !strings.Contains(printed[name], "--- FAIL: ") {
				t.Error("the failing test has passed")
			}
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "failures", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := all[strings.TrimSuffix(filepath.Base(file), ".txt")]; !ok {
			t.Errorf("%s is of no test", file)
		}
	}
}

// The failure that the documentation of the package shows is a real one.
func TestTutorial(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^//\t?`).ReplaceAllString(string(doc), "")
	printed, err := os.ReadFile(filepath.Join("testdata", "failures", "tutorial.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, failure, _ := strings.Cut(string(printed), ".go:123: Expect")
	failure, _, _ = strings.Cut(failure, "--- FAIL")
	failure = strings.ReplaceAll(failure, "\n    ", "\n")
	if failure == "" || !strings.Contains(text, failure) {
		t.Errorf("doc.go does not show this failure:\n%s", failure)
	}
}

// runFailing returns what each of the failures prints.
func runFailing(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFailing$", "-test.v")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(env string) bool { return strings.HasPrefix(env, "COLOR_DIFF=") })
	// Coverage of the other process must not end in the output.
	cmd.Env = append(cmd.Env, failuresEnv+"=1", "GOCOVERDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the failing tests have passed:\n%s", out)
	}
	if bytes.Contains(out, []byte("panic: ")) || !bytes.HasSuffix(bytes.TrimSpace(out), []byte("FAIL")) {
		t.Fatalf("the failing tests did not run to their end:\n%s", out)
	}

	begin := regexp.MustCompile(`(?m)^=== RUN   TestFailing/([^/\n]+)\n`)
	steps, results, _ := bytes.Cut(out, []byte("\n--- FAIL: TestFailing "))
	printed := map[string]string{}
	for _, at := range begin.FindAllSubmatchIndex(steps, -1) {
		text, name := steps[at[1]:], string(steps[at[2]:at[3]])
		if next := begin.FindIndex(text); next != nil {
			text = text[:next[0]]
		}
		// What has become of each test is only told at the end.
		result := regexp.MustCompile(`(?m)^    ( *--- [A-Z]+: TestFailing/` + name + `[/ ].*\n)`)
		text = bytes.TrimRight(text, "\n")
		for _, line := range result.FindAllSubmatch(results, -1) {
			text = append(append(slices.Clip(text), '\n'), bytes.TrimSuffix(line[1], []byte("\n"))...)
		}
		printed[name] = normalizeOutput(append(text, '\n'))
	}
	return printed
}

// normalizeOutput removes what changes from run to run.
func normalizeOutput(out []byte) string {
	for _, n := range []struct{ expr, with string }{
		{`\x{a0}`, " "}, // cmp.Diff chooses between two sorts of blanks
		{`(?m)[ \t]+$`, ""},
		{`\(\d+\.\d+s\)`, "(0.00s)"},
		{`\.go:\d+`, ".go:123"},
		{`0x[0-9a-f]{6,}`, "0xc000123456"},
		{`TestFailing/`, "Test/"},
	} {
		out = regexp.MustCompile(n.expr).ReplaceAll(out, []byte(n.with))
	}
	return string(out)
}
