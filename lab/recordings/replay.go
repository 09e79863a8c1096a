// SPDX-License-Identifier: Apache-2.0

package recordings

import (
	"testing"

	"trueup.dev/converge"
	"trueup.dev/observe/recorder"
)

// Replay checks the scenario that a recording makes of another one, which keeps everything but its given objects and
// steps.
func Replay(t *testing.T, file string, s converge.Scenario, o converge.Options) *converge.Report {
	t.Helper()
	s, _ = Observed(s, func(*recorder.Recorder) {})
	s.Given, s.Steps = nil, nil
	s, err := converge.FromRecording(file, s)
	if err != nil {
		t.Fatal(err)
	}
	report, err := converge.Check(t, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// The ways in which a recording leads to a failing test.
const (
	NoFaults = "the users' steps alone"
	Recorded = "the recorded faults"
	Similar  = "similar faults"
	Searched = "the search"
	NotFound = "not found"
)

// FoundBy returns what found the bug with a recording.
func FoundBy(report *converge.Report) string {
	switch r := report.Certificate.Recorded; {
	case report.Failure == nil:
		return NotFound
	case r == nil:
		return NoFaults
	case r.Failed:
		return Recorded
	case report.Certificate.Singles == 0 && r.Similar > 0:
		return Similar
	}
	return Searched
}
