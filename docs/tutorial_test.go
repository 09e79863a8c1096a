// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	bannerv1 "trueup.dev/docs/internal/banner/v1"
	"trueup.dev/sandbox"
)

// TutorialVariable is set in the environment of the tests that fail on purpose.
const TutorialVariable = "TRUEUP_DOCS_TUTORIAL"

// The tutorial on testing shows the output of tests that fail. A block of text with a name contains it:
//
//	```text TestName
//	```text TestName beginning of one of its failures
//
// `go test ./docs -update` copies it.
func TestTutorial(t *testing.T) {
	const guide = "testing.md"
	printed := runFailing(
		t, "TestBannerReconciler", "TestTextReconciler", "TestTextReconcilerWiring", "TestPageReconcilerOnCluster",
	)
	before := readFile(t, guide)
	after, names := withBlocks(t, guide, before, "text", func(name string) (string, bool) {
		test, failure, _ := strings.Cut(name, " ")
		return excerpt(printed[test], failure)
	})
	for test := range printed {
		if !slices.ContainsFunc(names, func(name string) bool { return name == test || strings.HasPrefix(name, test+" ") }) {
			t.Errorf("%s does not show how %s fails", guide, test)
		}
	}
	if before == after {
		return
	}
	if *update {
		if err := os.WriteFile(guide, []byte(after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the failures in %s differ from the output; `go test ./docs -update` copies it (-guide +printed):\n%s",
		guide, cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
}

// runFailing returns the output of failing tests by their names. They run in another process, on the cluster of this
// one.
func runFailing(t *testing.T, tests ...string) map[string]string {
	t.Helper()
	env := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{bannerv1.CRDs}})
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^("+strings.Join(tests, "|")+")$")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "COLOR_DIFF=")
	})
	cmd.Env = append(cmd.Env,
		TutorialVariable+"=1", sandbox.KubeconfigVariable+"="+env.KubeconfigPath(), "GOCOVERDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the tests that fail on purpose passed:\n%s", out)
	}
	for _, n := range []struct{ expr, with string }{
		{`\x{a0}`, " "}, // cmp.Diff chooses between two types of spaces
		{`(?m)[ \t]+$`, ""},
		{`\(\d+\.\d+s\)`, "(0.00s)"},
		{`\.go:\d+: `, ".go:123: "},
	} {
		out = regexp.MustCompile(n.expr).ReplaceAll(out, []byte(n.with))
	}
	printed := map[string]string{}
	starts := regexp.MustCompile(`(?m)^--- FAIL: (\w+) `).FindAllSubmatchIndex(out, -1)
	for i, start := range starts {
		end := len(out) - len("FAIL\n")
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		printed[string(out[start[2]:start[3]])] = string(out[start[0]:end])
	}
	for _, test := range tests {
		if printed[test] == "" {
			t.Fatalf("%s did not fail:\n%s", test, out)
		}
	}
	return printed
}

// excerpt returns the failure that begins with a text from the output of a test; for an empty text all of the output.
func excerpt(printed, beginning string) (string, bool) {
	if beginning == "" {
		return printed, printed != ""
	}
	position := regexp.MustCompile(`(?m)^ {8}\w+\.go:\d+: `)
	starts := position.FindAllStringIndex(printed, -1)
	for i, start := range starts {
		end := len(printed)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		if strings.HasPrefix(printed[start[1]:end], beginning) {
			return regexp.MustCompile(`(?m)^ {8}`).ReplaceAllString(printed[start[0]:end], ""), true
		}
	}
	return "", false
}

func TestExcerpt(t *testing.T) {
	const printed = "--- FAIL: TestX (0.00s)\n        x_test.go:1: one\n            more\n        x_test.go:2: two\n"
	for beginning, want := range map[string]string{
		"": printed, "one": "x_test.go:1: one\n    more\n", "two": "x_test.go:2: two\n", "three": "",
	} {
		if got, ok := excerpt(printed, beginning); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t", beginning, got, ok)
		}
	}
}
