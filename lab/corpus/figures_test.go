// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/lab/corpus"
	"trueup.dev/lab/corpus/measure"
)

var updateFlag = flag.Bool("update", false, "copy the report to the page of figures")

// TestFigures compares the page of figures with the report, and the report with the corpus.
func TestFigures(t *testing.T) {
	const page, begin, end = "../../docs/converge/figures.md", "```text converge-figures\n", "```\n"
	report, err := measure.Read("../../docs/converge/report.json")
	if err != nil {
		t.Fatal(err)
	}
	if all := len(corpus.All()); !report.Complete || report.Entries != all || len(report.Controls) != all {
		t.Errorf("the report has %d of %d entries: run `make report`", len(report.Controls), all)
	}
	var printed strings.Builder
	report.Print(&printed)

	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	shown, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("%s does not have a block %q", page, strings.TrimSpace(begin))
	case shown == printed.String():
	case *updateFlag:
		if err := os.WriteFile(page, []byte(before+begin+printed.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is out of date; `go test ./corpus -run Figures -update` in lab/ updates it (-page +report):\n%s",
			page, cmp.Diff(shown, printed.String()))
	}
}
