// SPDX-License-Identifier: Apache-2.0

package converge

import "testing"

// What does the report say about the errors of a recording in which no reconcile returned one? Not "0 of 0 errors".
func TestHowOftenDidErrorsOccurAgain(t *testing.T) {
	for want, recorded := range map[string]Recorded{
		"recording: no fault, no reconcile of it returned an error; it does not fail; 0 similar schedules tried": {},
		"recording: 1 of 2 faults injected, no reconcile of it returned an error; it fails": {
			Faults: 2, Injected: 1, Failed: true,
		},
		"recording: 1 of 1 fault injected, 0 of 1 error occurred again; it fails": {
			Faults: 1, Injected: 1, Errors: 1, Failed: true,
		},
	} {
		if got := recorded.String(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
