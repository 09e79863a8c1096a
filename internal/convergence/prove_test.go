// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"testing"

	"trueup.dev/converge"
)

// prove is [converge.Run] for tests that run in parallel.
//
// With the race detector, only small scenarios run: a schedule takes ten times as long, and everything happens in
// sequence anyway.
func prove(t *testing.T, s converge.Scenario) {
	t.Helper()
	if raceDetector {
		t.Skip("without the race detector only")
	}
	t.Parallel()
	converge.Run(t, s)
}
