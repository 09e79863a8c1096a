// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/lab/corpus"
	"trueup.dev/lab/recordings"
	"trueup.dev/observe/recorder"
	"trueup.dev/observe/recording"
)

// record searches for the bug of a scenario, and returns a file with what the recorder of the last process has of the
// object in most trouble.
func record(t *testing.T, s converge.Scenario) (file string, failure *converge.Failure) {
	t.Helper()
	var last *recorder.Recorder
	s, ok := recordings.Observed(s, func(r *recorder.Recorder) { last = r })
	if !ok {
		t.Skip("the controller registers itself, and is not observed")
	}
	report, err := converge.Check(t, s, converge.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if report.Failure == nil {
		t.Skip("a default search does not find it by an observed controller")
	}
	objects, _ := last.Objects(recorder.Query{Limit: 1})
	if len(objects) == 0 {
		t.Skip("nothing was reconciled after the last start")
	}
	found, ok := last.Recording(objects[0].Controller, client.ObjectKey{
		Namespace: objects[0].Object.Namespace, Name: objects[0].Object.Name,
	})
	if !ok {
		t.Skip("there is no recording")
	}
	file = filepath.Join(t.TempDir(), "recording.json")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := recording.Write(f, found); err != nil {
		t.Fatal(err)
	}
	return file, report.Failure
}

// recordedBugs are the bugs that need a fault, and that a recording leads to without a search. For two others, it took
// more than the recording to know that the correct reconciler is correct.
var recordedBugs = map[string]string{
	"c01-attempt-not-undone":         recordings.Recorded,
	"c01-key-of-generated-name":      recordings.Similar,
	"c01-pending-forgotten":          recordings.Recorded,
	"c01-phase-before-job":           recordings.Similar,
	"c02-list-then-generate":         recordings.Similar,
	"c02-revision-by-search":         recordings.Recorded,
	"c02-run-remembered-in-status":   recordings.Similar,
	"c04-rotation-in-memory":         recordings.Similar,
	"c05-bucket-of-the-dead":         recordings.Searched,
	"c06-missing-taken-for-final":    recordings.NotFound,
	"c06-version-of-another-read":    recordings.Recorded,
	"c07-instance-without-token":     recordings.Similar,
	"c07-quota-added-twice":          recordings.Similar,
	"c07-rolled-back-success":        recordings.Recorded,
	"c07-timeout-taken-for-success":  recordings.Recorded,
	"c08-appended-once-more":         recordings.Similar,
	"c08-endpoints-in-list-order":    recordings.Similar,
	"c10-cleanup-not-repeatable":     recordings.Similar,
	"c12-condition-of-another-lost":  recordings.Similar,
	"c12-shadowed-error":             recordings.Recorded,
	"c14-all-client-errors-terminal": recordings.Recorded,
	"c14-error-logged":               recordings.Recorded,
	"c14-retried-on-the-spot-only":   recordings.Recorded,
	"c15-first-is-leader":            recordings.Similar,
	"c15-members-in-list-order":      recordings.Similar,
}

var allRecordings = flag.Bool(
	"corpus.recordings", false, "record all bugs, and print what finds them with the recording",
)

// TestRecordings_fromABugToAFailingTest records bugs, and expects a test that fails for the same reason from each
// recording, and none that fails for the correct reconciler.
func TestRecordings_fromABugToAFailingTest(t *testing.T) {
	var mu sync.Mutex
	counts := map[string]int{}
	t.Cleanup(func() { t.Log(counts) })
	for _, e := range corpus.All() {
		want, isRecorded := recordedBugs[e.Name]
		if e.Buggy == nil || !isRecorded && !*allRecordings {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			file, failure := record(t, e.Buggy())
			o := converge.DefaultOptions()
			buggy, correct := recordings.Replay(t, file, e.Buggy(), o), recordings.Replay(t, file, e.Correct(), o)
			by := recordings.FoundBy(buggy)
			t.Logf("%s; recorded with %v; %v", by, failure.Faults, buggy.Certificate.Recorded)
			mu.Lock()
			defer mu.Unlock()
			counts[by]++
			if correct.Failure != nil {
				counts["false alarms"]++
				t.Errorf("false alarm: %s", correct.Failure)
			}
			if !isRecorded {
				return
			}
			if diff := cmp.Diff(want, by); diff != "" {
				t.Errorf("found by (-want +got):\n%s\n%v", diff, buggy.Certificate.Recorded)
			}
			if buggy.Failure != nil && buggy.Failure.Violation.Oracle != failure.Violation.Oracle {
				t.Errorf("%s, want %s", buggy.Failure, failure.Violation.Oracle)
			}
		})
	}
}
