// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

// TestWhatDidTheLastRunDo tests that each object has its own last run, although such runs share memory.
func TestWhatDidTheLastRunDo(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	run := func(name string, duration time.Duration, paths ...[]string) {
		p.start(name)
		for _, path := range paths {
			p.enter(path)
			p.call(path, observe.Call{Verb: observe.VerbGet, Cached: true, Kind: secret})
			p.observe(&observe.StepFinished{Run: p.run, Path: path, Outcome: observe.Succeeded, Duration: duration})
		}
		p.finish(reconcile.Result{}, nil)
	}
	run("a", 1*time.Millisecond, read)
	run("b", 2*time.Millisecond, read)
	run("c", 3*time.Millisecond, parent, read)
	run("a", 4*time.Millisecond, read)
	run("b", 5*time.Millisecond, parent)
	got := map[string][]string{}
	for _, name := range []string{"a", "b", "c"} {
		last := history(t, r, name).History[0]
		for _, s := range last.Steps[1:] {
			got[name] = append(got[name], fmt.Sprintf("%s: %s took %s, %d reads", last.ID, s.Name(), s.Duration, s.CachedReads))
		}
	}
	want := map[string][]string{
		"a": {"4: ReadSecret took 4ms, 1 reads"},
		"b": {"5: Children took 5ms, 1 reads"},
		"c": {"3: Children took 3ms, 1 reads", "3: ReadSecret took 3ms, 1 reads"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps of the last runs (-want +got):\n%s", diff)
	}
}

// TestMemoryOfRunsThatAreDropped fills a recorder with runs that share nothing. What it has at last must not depend on
// what it had before.
func TestMemoryOfRunsThatAreDropped(t *testing.T) {
	fill := func(rounds int) int {
		r := recorder.New(recorder.Options{Bytes: 100_000})
		p := &play{to: r}
		for i := range rounds * 100 {
			p.start(fmt.Sprintf("object-%03d", i%100))
			p.enter([]string{"Database", fmt.Sprintf("Step-%06d", i)})
			p.leave([]string{"Database", fmt.Sprintf("Step-%06d", i)}, nil)
			p.finish(reconcile.Result{}, nil)
		}
		return r.Bytes()
	}
	few, many := fill(3), fill(30)
	if few > 100_000 || few < 50_000 || many > few+5000 || many < few-5000 {
		t.Errorf("%d bytes after 3 rounds, %d after 30", few, many)
	}
}

// TestWhichObjectIsDropped tests that an object that is reconciled is kept, and others are dropped.
func TestWhichObjectIsDropped(t *testing.T) {
	r := recorder.New(recorder.Options{Bytes: 100_000})
	p := &play{to: r}
	for i := range 1000 {
		p.noOp("busy")
		p.noOp(fmt.Sprintf("object-%03d", i))
	}
	if h := history(t, r, "busy"); h.Runs != 1000 {
		t.Errorf("%d runs", h.Runs)
	}
	if _, total := r.Objects(recorder.Query{Name: "object-000"}); total != 0 {
		t.Error("an object that is not reconciled was kept")
	}
}
