// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"os"
	"path/filepath"
	"testing"

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
	_ = filepath.Join; file = "/tmp/h3-" + filepath.Base(t.Name()) + ".json"
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

// stage says by what a bug was found with a recording.
func stage(report *converge.Report) string {
	switch r := report.Certificate.Recorded; {
	case report.Failure == nil:
		return "not found"
	case r == nil:
		return "without faults"
	case r.Failed:
		return "by the recorded faults"
	case report.Certificate.Singles == 0 && r.Similar > 0:
		return "by similar faults"
	}
	return "by the search"
}

// TestRecordings_fromTheBugToAFailingTest records each bug.
func TestRecordings_fromTheBugToAFailingTest(t *testing.T) {
	for _, e := range corpus.All() {
		if e.Buggy == nil {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			file, failure := record(t, e.Buggy())
			buggy, correct := replay(t, file, e.Buggy()), replay(t, file, e.Correct())
			same := buggy.Failure != nil && buggy.Failure.Violation.Oracle == failure.Violation.Oracle
			t.Logf("STAGE %s | %s | same oracle %v | twin fails %v | recorded %v | %v | twin %v", e.Name, stage(buggy), same,
				correct.Failure != nil, failure.Faults, buggy.Certificate.Recorded, correct.Certificate.Recorded)
			if correct.Failure != nil {
				t.Logf("TWIN %s: %s", e.Name, correct.Failure)
			}
			if buggy.Failure == nil {
				data, _ := os.ReadFile(file)
				_ = os.WriteFile("/tmp/h3-"+e.Name+".json", data, 0o600)
				t.Logf("MISSED %s: %s", e.Name, failure)
			}
		})
	}
}
