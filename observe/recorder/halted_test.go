// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"testing"
	"time"

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
		p.observe(&observe.StepFinished{Run: p.run, Path: path, Outcome: observe.Halted, Duration: time.Millisecond})
	}
	p.observe(&observe.ReconcileFinished{Run: p.run, Result: reconcile.Result{}})
	if h := history(t, r, "a"); h.State != recorder.StateHalted || h.Step != "Database.Children.ConfigMap" {
		t.Errorf("state %s in step %q", h.State, h.Step)
	}
	p.noOp("a")
	if h := history(t, r, "a"); h.State != recorder.StateSucceeded || h.Step != "" {
		t.Errorf("after a run to the end: state %s in step %q", h.State, h.Step)
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
		if change(&o); r.ControllerOf(o) != want {
			t.Errorf("%v: got controller %q, want %q", o, r.ControllerOf(o), want)
		}
	}
	other := recorder.Ref{Kind: "Service", Namespace: "default", Name: "a"}
	if got := r.ControllerOf(other); got != "" {
		t.Errorf("another kind: got controller %q", got)
	}
	if _, ok := r.Object("database", types.NamespacedName{Namespace: "default", Name: "a"}); !ok {
		t.Error("the object is not recorded")
	}
}
