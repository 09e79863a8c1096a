// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"testing"

	"trueup.dev/converge"
)

// prove is [converge.Run] for tests that run side by side.
//
// Nothing runs with the race detector but what is small: a schedule takes ten times as long then, and one thing happens
// after the other anyway.
func prove(t *testing.T, s converge.Scenario) {
	t.Helper()
	if raceDetector {
		t.Skip("without the race detector only")
	}
	t.Parallel()
	converge.Run(t, s)
}
