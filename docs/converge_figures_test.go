// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"

	"trueup.dev/converge/corpus"
	"trueup.dev/converge/corpus/measure"
)

// TestConvergeFigures has the page show what was measured, which is of all there is to measure.
func TestConvergeFigures(t *testing.T) {
	report, err := measure.Read("converge/report.json")
	if err != nil {
		t.Fatal(err)
	}
	if all := len(corpus.All()); !report.Complete || report.Entries != all || len(report.Controls) != all {
		t.Errorf("the report has %d of %d entries: measure it anew with `make report`", len(report.Controls), all)
	}
	var printed strings.Builder
	report.Print(&printed)
	showPrinted(t, "converge/figures.md", map[string]string{"converge-figures": printed.String()})
}
