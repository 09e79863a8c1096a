// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
	"trueup.dev/observe/recording"
	"trueup.dev/research/corpus"
)

// observed returns the same scenario with Setup instead of New: an observed controller calls the reconciler. It reports
// false for reconcilers that register themselves, because their controllers are not observed.
func observed(s converge.Scenario, added func(*recorder.Recorder)) (converge.Scenario, bool) {
	if s.New == nil {
		return s, false
	}
	direct := s
	s.New, s.Owns, s.Watches, s.Indexes = nil, nil, nil, nil
	s.Setup = func(mgr manager.Manager) error {
		r := recorder.New(recorder.Options{Objects: true}) // what it has ends with the process
		observe.Of(mgr).Add(r)
		added(r)
		if direct.Indexes != nil {
			if err := direct.Indexes(mgr.GetFieldIndexer()); err != nil {
				return err
			}
		}
		env := converge.EnvOf(mgr)
		env.Client, env.APIReader = observe.Client(mgr), observe.NewReader(env.APIReader, env.Client, observe.Of(mgr))
		b := builder.ControllerManagedBy(mgr).For(direct.For)
		for _, owned := range direct.Owns {
			b.Owns(owned)
		}
		for _, watch := range direct.Watches {
			requests := watch.Requests
			if requests == nil {
				requests = watch.NewRequests(env)
			}
			b.Watches(watch.Object, handler.EnqueueRequestsFromMapFunc(requests))
		}
		return observe.Controller(b).Complete(direct.New(env))
	}
	return s, true
}

// record searches for the bug of a scenario, and returns a file with what the recorder of the last process has of the
// object in most trouble.
func record(t *testing.T, s converge.Scenario) (file string, failure *converge.Failure) {
	t.Helper()
	var last *recorder.Recorder
	s, ok := observed(s, func(r *recorder.Recorder) { last = r })
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

// replay checks the scenario that a recording makes of another one, which keeps everything but its given objects and
// steps.
func replay(t *testing.T, file string, s converge.Scenario) *converge.Report {
	t.Helper()
	s, _ = observed(s, func(*recorder.Recorder) {})
	s.Given, s.Steps = nil, nil
	s, err := converge.FromRecording(file, s)
	if err != nil {
		t.Fatal(err)
	}
	report, err := converge.Check(t, s, converge.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// The ways in which a recording leads to a failing test.
const (
	noFaults = "the users' steps alone"
	recorded = "the recorded faults"
	similar  = "similar faults"
	searched = "the search"
	notFound = "not found"
)

// foundBy returns what found the bug with a recording.
func foundBy(report *converge.Report) string {
	switch r := report.Certificate.Recorded; {
	case report.Failure == nil:
		return notFound
	case r == nil:
		return noFaults
	case r.Failed:
		return recorded
	case report.Certificate.Singles == 0 && r.Similar > 0:
		return similar
	}
	return searched
}

// recordedBugs are the bugs that need a fault, and that a recording leads to without a search.
var recordedBugs = map[string]string{
	"c01-attempt-not-undone":         recorded,
	"c01-key-of-generated-name":      similar,
	"c01-pending-forgotten":          recorded,
	"c01-phase-before-job":           similar,
	"c02-list-then-generate":         similar,
	"c02-revision-by-search":         recorded,
	"c02-run-remembered-in-status":   similar,
	"c04-rotation-in-memory":         similar,
	"c06-version-of-another-read":    recorded,
	"c07-instance-without-token":     similar,
	"c07-quota-added-twice":          similar,
	"c07-rolled-back-success":        recorded,
	"c07-timeout-taken-for-success":  recorded,
	"c08-appended-once-more":         similar,
	"c08-endpoints-in-list-order":    similar,
	"c10-cleanup-not-repeatable":     similar,
	"c12-condition-of-another-lost":  similar,
	"c12-shadowed-error":             recorded,
	"c14-all-client-errors-terminal": recorded,
	"c14-error-logged":               recorded,
	"c14-retried-on-the-spot-only":   recorded,
	"c15-first-is-leader":            similar,
	"c15-members-in-list-order":      similar,
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
			buggy, correct := replay(t, file, e.Buggy()), replay(t, file, e.Correct())
			by := foundBy(buggy)
			t.Logf("%s; recorded with %v; %v", by, failure.Faults, buggy.Certificate.Recorded)
			mu.Lock()
			defer mu.Unlock()
			counts[by]++
			if correct.Failure != nil {
				counts["false alarms"]++
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
			if correct.Failure != nil {
				t.Errorf("false alarm: %s", correct.Failure)
			}
		})
	}
}
