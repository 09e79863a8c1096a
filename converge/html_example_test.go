// SPDX-License-Identifier: Apache-2.0

package converge_test

import (
	"os"
	"testing"

	"trueup.dev/converge"
)

// A page of a failure. Run writes it with the flag -converge.html.
func ExampleFailure_HTML() {
	var t *testing.T               // of a test
	var scenario converge.Scenario // the one of the test

	report, err := converge.Check(t, scenario, converge.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if report.Failure == nil {
		return
	}
	page, err := report.Failure.HTML()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("failure.html", page, 0o644); err != nil {
		t.Fatal(err)
	}
}
