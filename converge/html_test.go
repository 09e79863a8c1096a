// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"os"
	"testing"
)

func failureOf(t *testing.T, s Scenario) *Failure {
	t.Helper()
	report, err := Check(t, s, Options{Recoveries: 1000, Pairs: 1000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if report.Failure == nil {
		t.Fatalf("no failure: %s", report.Certificate)
	}
	return report.Failure
}

func TestHTMLTry(t *testing.T) {
	for n, s := range map[string]Scenario{"copying": copierScenario(true), "setup": controllerScenario(true), "keeping": keeping()} {
		f := failureOf(t, s)
		t.Log(f)
		b, err := f.HTML()
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile("/tmp/rep-"+n+".html", b, 0o644)
	}
}
