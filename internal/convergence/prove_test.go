// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"flag"
	"strings"
	"testing"

	"trueup.dev/converge"
)

// prove is [converge.Run] with fewer combinations of faults, because there are many scenarios here. With a flag of package converge it does what that says.
//
// Nothing runs with the race detector but what is small: a schedule takes ten times as long then, and one thing happens after the other anyway.
func prove(t *testing.T, s converge.Scenario) {
	t.Helper()
	if raceDetector {
		t.Skip("without the race detector only")
	}
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || strings.HasPrefix(f.Name, "converge.") })
	if asked {
		converge.Run(t, s)
		return
	}
	t.Parallel()
	report, err := converge.Check(t, s, converge.Options{Recoveries: 100, Pairs: 100, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if report.Failure != nil {
		t.Errorf("%s\nreplay: go test -run '^%s$' -converge.replay='%s'", report.Failure, strings.ReplaceAll(t.Name(), "/", "$/^"), report.Failure.Replay)
		return
	}
	t.Log(report.Certificate)
}
