// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"testing"

	"trueup.dev/converge"
)

// prove is [converge.Run] for tests that run in parallel. With -short, it tries single faults that make at most 3,000
// requests, and no combinations.
//
// With the race detector, only small scenarios run: a schedule takes ten times as long, and everything happens in
// sequence anyway.
func prove(t *testing.T, s converge.Scenario) {
	t.Helper()
	proveWith(t, s, 3_000)
}

// proveWith is prove with another number of requests with -short, for tests with many scenarios.
func proveWith(t *testing.T, s converge.Scenario, requests int) {
	t.Helper()
	if raceDetector {
		t.Skip("without the race detector only")
	}
	t.Parallel()
	if !testing.Short() {
		converge.Run(t, s)
		return
	}
	o := converge.DefaultOptions()
	o.SingleRequests, o.Recoveries, o.Pairs = requests, 0, 0
	report, err := converge.Check(t, s, o)
	switch {
	case err != nil:
		t.Fatal(err)
	case report.Failure != nil:
		t.Fatal(report.Failure)
	}
}
