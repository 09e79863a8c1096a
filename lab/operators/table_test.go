// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/lab/operators"
)

// TestTable compares the page of operators with the results, and the results with the tests.
func TestTable(t *testing.T) {
	const page, begin, end = "../../docs/converge/operators.md", "<!-- operators -->\n", "<!-- /operators -->\n"
	results, err := operators.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		content := ""
		entries, err := os.ReadDir(r.Directory)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if strings.HasSuffix(entry.Name(), "_test.go") {
				file, err := os.ReadFile(r.Directory + "/" + entry.Name())
				if err != nil {
					t.Fatal(err)
				}
				content += string(file)
			}
		}
		if !strings.Contains(content, "\nfunc "+r.Test+"(t *testing.T)") {
			t.Errorf("results.json has %s, which no longer exists in %s", r.Test, r.Directory)
		}
	}
	if !slices.IsSortedFunc(results, operators.Compare) {
		t.Error("results.json is not sorted")
	}
	want, err := operators.Table(results)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	shown, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("%s does not have %s", page, begin)
	case shown == want:
	case operators.Updating():
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf(
			"%s is out of date; `go test . -update` in operators/ updates it (-page +results):\n%s", page, cmp.Diff(shown, want),
		)
	}
}
