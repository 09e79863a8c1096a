// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

func TestWhichStepDoesItWaitIn(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.start("a")
	for _, path := range [][]string{parent, child} {
		p.enter(path)
	}
	for _, path := range [][]string{child, parent, root} {
		p.observe(&observe.StepFinished{
			Run: p.run, Path: path, Outcome: observe.Halted, Reason: "by " + path[len(path)-1], Duration: time.Millisecond,
		})
	}
	p.observe(&observe.ReconcileFinished{Run: p.run, Result: reconcile.Result{}})
	if h := history(t, r, "a"); h.State != recorder.StateHalted || h.Step != "Database.Children.ConfigMap" ||
		h.HaltReason != "by ConfigMap" {
		t.Errorf("state %s in step %q: %s", h.State, h.Step, h.HaltReason)
	}
	p.noOp("a")
	if h := history(t, r, "a"); h.State != recorder.StateSucceeded || h.Step != "" ||
		h.HaltReason != "" {
		t.Errorf("after a run to the end: state %s in step %q: %s", h.State, h.Step, h.HaltReason)
	}
}

func TestWhichMistakesWereFound(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.start("a")
	for range 2 {
		p.observe(&observe.ProblemFound{Run: p.run, Path: child, Text: "a field is not copied"})
	}
	p.observe(&observe.ProblemFound{Text: "outside of a run"})
	want := []recorder.Problem{{Step: "Database.Children.ConfigMap", Text: "a field is not copied"}}
	if diff := cmp.Diff(want, r.Controllers()[0].Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestWhatRunsNow(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.start("a")
	first := p.run
	p.start("b")
	p.enter(read)
	a := recorder.Ref{Group: database.Group, Version: "v1", Kind: "Database", Namespace: "default", Name: "a"}
	b := a
	b.Name = "b"
	want := []recorder.Unfinished{
		{Object: a, Since: first.Started, Step: "Database"},
		{Object: b, Since: p.run.Started, Step: "Database.ReadSecret"},
	}
	if diff := cmp.Diff(want, r.Unfinished("database")); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if others := r.Unfinished("other"); len(others) > 0 {
		t.Errorf("runs of another controller: %v", others)
	}
}

// Another listener may attach a value to a run that the recorder already knows.
func TestQueriesWhileListenersAttach(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.start("a")
	var reading sync.WaitGroup
	reading.Go(func() {
		if runs := r.Unfinished("database"); len(runs) != 1 {
			t.Errorf("runs: %v", runs)
		}
		if h := history(t, r, "a"); len(h.History) != 1 {
			t.Errorf("history: %v", h.History)
		}
		r.Objects(recorder.Query{})
		r.Controllers()
	})
	for key := range 3 {
		p.run.Attach(key, "value")
	}
	reading.Wait()
	for key := range 3 {
		if value := p.run.Attached(key); value != "value" {
			t.Errorf("the value of key %d is %v", key, value)
		}
	}
}

func TestWhichStepIsRefused(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	refuse := func(err error) {
		p.start("a")
		p.enter(parent)
		p.enter(child)
		p.call(child, observe.Call{Verb: observe.VerbCreate, Kind: configMap, Err: err})
		if err != nil {
			p.refused = []observe.Failure{{Step: strings.Join(child, "."), Err: err}}
		}
		p.leave(child, nil) // the reconciler puts the error into a condition
		p.leave(parent, nil)
		p.finish(reconcile.Result{}, nil)
	}
	refuse(nil)
	refuse(errors.New("quota"))
	failures := map[string]string{}
	for _, s := range r.Controllers()[0].Steps {
		failures[s.Name()] = fmt.Sprintf("%d of %d %s", s.RecentFailures, s.Recent, s.LastError)
	}
	want := map[string]string{"Database": "0 of 2 ", "Children": "0 of 2 ", "ConfigMap": "1 of 2 quota"}
	if diff := cmp.Diff(want, failures); diff != "" {
		t.Errorf("recent failures (-want +got):\n%s", diff)
	}
}

func TestHowFarAreTheCachesBehind(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.wait("a")
	first := p.run.Started
	p.wait("a")
	if c := r.Controllers()[0]; c.Waiting != 1 || !c.WaitingSince.Equal(first) || c.LongestWait != 0 {
		t.Errorf("while it waits: %d since %v, longest %v", c.Waiting, c.WaitingSince, c.LongestWait)
	}
	p.noOp("a")
	if c := r.Controllers()[0]; c.Waiting != 0 || !c.WaitingSince.IsZero() || c.LongestWait != 2*time.Second {
		t.Errorf("afterwards: %d since %v, longest %v", c.Waiting, c.WaitingSince, c.LongestWait)
	}
}

func TestControllerOf(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.noOp("a")
	object := recorder.Ref{Group: database.Group, Kind: database.Kind, Namespace: "default", Name: "a"}
	for want, change := range map[string]func(*recorder.Ref){
		"database": func(*recorder.Ref) {},
		"":         func(o *recorder.Ref) { o.Name = "b" },
	} {
		o := object
		if change(&o); r.ControllerOf(o, "") != want {
			t.Errorf("%v: got controller %q, want %q", o, r.ControllerOf(o, ""), want)
		}
	}
	other := recorder.Ref{Kind: "Service", Namespace: "default", Name: "a"}
	if got := r.ControllerOf(other, ""); got != "" {
		t.Errorf("another kind: got controller %q", got)
	}
	if _, ok := r.Object("database", types.NamespacedName{Namespace: "default", Name: "a"}); !ok {
		t.Error("the object is not recorded")
	}
}

// A request that waits for the lease of the manager is not a reconcile without a change.
func TestDoesItWaitForTheLease(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.fail("a", errors.New("quota"))
	p.begin("a")
	p.observe(&observe.Deferred{Run: p.run, Reason: observe.DeferLease})
	p.observe(&observe.ReconcileFinished{Run: p.run, Result: reconcile.Result{RequeueAfter: time.Second}})
	h := history(t, r, "a")
	if h.State != recorder.StateFailing || h.LeaseWaits != 1 || h.StaleWaits != 0 || h.Runs != 1 {
		t.Errorf("state %s, %d waits for the lease, %d for the caches, %d runs", h.State, h.LeaseWaits, h.StaleWaits, h.Runs)
	}
	p.noOp("a")
	if h := history(t, r, "a"); h.State != recorder.StateSucceeded || h.LeaseWaits != 0 || h.Runs != 2 {
		t.Errorf("afterwards: state %s, %d waits for the lease, %d runs", h.State, h.LeaseWaits, h.Runs)
	}
}
