// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

func TestIsItLooping(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r, from: time.Now().UTC()}
	write := func(causes ...observe.Cause) {
		p.start("a", causes...)
		p.call(root, observe.Call{Verb: observe.VerbUpdate, Kind: configMap})
	}
	expect := func(when string, want *recorder.Loop) {
		t.Helper()
		h := history(t, r, "a")
		if diff := cmp.Diff(want, h.Loop); diff != "" || (h.State == recorder.StateLooping) != (want != nil) {
			t.Errorf("%s: state %s, loop (-want +got):\n%s", when, h.State, diff)
		}
	}
	delayed := observe.Cause{Type: observe.CauseLoopDelay, After: 4 * time.Second, Count: 1}
	write()
	p.observe(&observe.LoopFound{Run: p.run, Reconciles: 12, Within: time.Second, Repeats: []string{"data.a"}})
	p.finish(reconcile.Result{}, nil)
	want := &recorder.Loop{Reconciles: 12, Within: time.Second, Repeats: []string{"data.a"}, Last: p.run.Started}
	expect("found", want)
	p.noOp("a") // of the event that the last write caused
	expect("after a run without a write", want)
	write(delayed)
	p.finish(reconcile.Result{}, nil)
	again := *want
	again.Last, again.Delay = p.run.Started, delayed.After
	expect("after a delayed run that writes", &again)
	p.begin("a", delayed)
	p.observe(&observe.ReconcileFinished{Run: p.run, Result: reconcile.Result{RequeueAfter: time.Millisecond}})
	expect("after a run that waits for the rest of the delay", &again)
	p.start("a", delayed)
	p.finish(reconcile.Result{}, nil)
	expect("after a delayed run without a write", nil)
}

func TestLoopEndsWithoutAFurtherReconcile(t *testing.T) {
	for ago, want := range map[time.Duration]recorder.State{
		30 * time.Second: recorder.StateLooping, 2 * time.Minute: recorder.StateSucceeded,
	} {
		r := recorder.New(recorder.Options{})
		p := &play{to: r, from: time.Now().Add(-ago)}
		p.start("a")
		p.observe(&observe.LoopFound{Run: p.run, Reconciles: 12})
		p.finish(reconcile.Result{}, nil)
		if h := history(t, r, "a"); h.State != want || (h.Loop == nil) != (want == recorder.StateSucceeded) {
			t.Errorf("%v after the last run: state %s, loop %v", ago, h.State, h.Loop)
		}
	}
}
