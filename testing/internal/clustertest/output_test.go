// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/sandbox"
)

var update = flag.Bool("update", false, "write the output of tests to the golden files instead of comparing")

// printingEnv is set in the process that runs the tests whose output is compared.
const printingEnv = "TRUEUP_TEST_PRINTING"

// TestPrinting has the tests that fail or are skipped. TestOutput runs them in another process.
func TestPrinting(t *testing.T) {
	if os.Getenv(printingEnv) == "" {
		t.Skip("only for TestOutput")
	}
	for _, p := range slices.Concat(lies(), mistakes(), impossibilities()) {
		t.Run(p.name, p.run)
	}
}

// printing is a test that fails or is skipped.
type printing struct {
	name string
	run  func(t *testing.T)
}

// The output explains to a new user how to fix the case.
func TestOutput(t *testing.T) {
	c := newCluster(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPrinting$", "-test.v")
	cmd.Env = append(
		os.Environ(), printingEnv+"=1", sandbox.KubeconfigVariable+"="+c.KubeconfigPath(), "GOCOVERDIR="+t.TempDir(),
	)
	out, err := cmd.CombinedOutput()
	if err == nil || bytes.Contains(out, []byte("panic: ")) {
		t.Fatalf("the tests did not fail, or not in the right way:\n%s", out)
	}
	for _, n := range []struct{ expr, with string }{
		{`\x{a0}`, " "}, // cmp.Diff randomly uses one of two space characters
		{`(?m)[ \t]+$`, ""},
		{`\(\d+\.\d+s\)`, "(0.00s)"},
		{`\.go:\d+`, ".go:123"},
		{`https://127\.0\.0\.1:\d+`, "https://127.0.0.1:6443"},
		{`\b198\.18\.\d+\.\d+`, "198.18.0.123"},
		{`\btestprinting-[a-z0-9-]+-[a-z0-9]{5}\b`, "testprinting-12345"},
		{`TestPrinting/`, ""},
	} {
		out = regexp.MustCompile(n.expr).ReplaceAll(out, []byte(n.with))
	}
	results := regexp.MustCompile(`(?m)^    --- ([A-Z]+): (\S+) .*\n((?:^ {8}.*\n|\n)*)`)
	seen := map[string]bool{}
	for _, match := range results.FindAllStringSubmatch(string(out), -1) {
		name := match[2]
		t.Run(name, func(t *testing.T) {
			seen[name] = true
			text := printedBy(string(out), name)
			file := filepath.Join("testdata", "output", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("the test prints something else; with -update it is accepted (-want +got):\n%s", diff)
			}
		})
	}
	for _, p := range slices.Concat(lies(), mistakes(), impossibilities()) {
		if !seen[p.name] {
			t.Errorf("%s has not run:\n%s", p.name, out)
		}
	}
}

// printedBy returns the output of a test and its subtests.
func printedBy(out, name string) string {
	steps, results, _ := strings.Cut(out, "\n--- FAIL: TestPrinting ")
	_, text, _ := strings.Cut(steps, "=== RUN   "+name+"\n")
	if end := regexp.MustCompile(`(?m)^=== RUN   [^/\n]+$`).FindStringIndex(text); end != nil {
		text = text[:end[0]]
	} else {
		text += "\n"
	}
	for _, line := range regexp.MustCompile(`(?m)^    ( *--- [A-Z]+: `+name+`[/ ].*)$`).FindAllStringSubmatch(results, -1) {
		text += line[1] + "\n"
	}
	return text
}
