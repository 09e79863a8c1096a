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

func history(t *testing.T, r *recorder.Recorder, name string) recorder.History {
	t.Helper()
	h, ok := r.Object("database", types.NamespacedName{Namespace: "default", Name: name})
	if !ok {
		t.Fatalf("object %s is not recorded", name)
	}
	return h
}

func TestWhyDidItRunAndWhatDidItDo(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.write("a")
	h := history(t, r, "a")
	want := []recorder.Run{{
		ID: "1", Started: started.Add(time.Second), Duration: 10 * time.Millisecond, Outcome: recorder.Changed, Writes: 1,
		Causes: []recorder.Cause{{
			Type: observe.CauseObject, Verb: observe.Created, Count: 1,
			Object: recorder.Ref{Group: "example.com", Version: "v1", Kind: "Database"},
		}},
		Steps: []recorder.Step{
			{Path: root, Duration: time.Millisecond, Outcome: observe.Succeeded},
			{Path: parent, Duration: time.Millisecond, Outcome: observe.Succeeded},
			{Path: child, Duration: time.Millisecond, Outcome: observe.Succeeded, Calls: []recorder.Call{{
				Verb: "create", After: "7", Duration: time.Millisecond,
				Object: recorder.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a"},
			}}},
		},
		Next: &recorder.Next{At: started.Add(time.Second + 10*time.Millisecond + time.Minute)},
	}}
	if diff := cmp.Diff(want, h.History); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestWhichStepFails(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.noOp("a")
	p.fail("a", errors.New("quota exceeded"))
	p.fail("a", errors.New("quota exceeded"))
	h := history(t, r, "a")
	got := []any{h.State, h.Step, h.Error, h.FailedInRow, h.FailingSince, h.Next}
	want := []any{
		recorder.StateFailing, "Database.Children.ConfigMap", "quota exceeded", 2, started.Add(2 * time.Second),
		&recorder.Next{Retry: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	texts := []string{}
	for _, s := range h.History[0].Steps {
		texts = append(texts, s.Name()+": "+string(s.Outcome)+" "+s.Error)
	}
	wantTexts := []string{"Database: Failed ", "Children: Failed ", "ConfigMap: Failed quota exceeded"}
	if diff := cmp.Diff(wantTexts, texts); diff != "" {
		t.Errorf("the error is shown once (-want +got):\n%s", diff)
	}
	p.noOp("a")
	if h := history(t, r, "a"); h.State != recorder.StateSucceeded || h.Error != "" || h.Step != "" {
		t.Errorf("after it succeeded: state %s, step %q, error %q", h.State, h.Step, h.Error)
	}
}

// TestWhatDoesTheServerRefuse tests a run that returns no error, because the reconcilers put it into a condition.
func TestWhatDoesTheServerRefuse(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.start("a")
	p.refused = []observe.Failure{
		{Step: strings.Join(child, "."), Object: "ConfigMap default/a", Err: errors.New("exceeded quota")},
		{Step: strings.Join(root, "."), Object: "Secret default/a", Err: errors.New("forbidden")},
	}
	for _, path := range [][]string{parent, child} {
		p.enter(path)
	}
	p.leave(child, nil)
	p.leave(parent, nil)
	p.finish(reconcile.Result{}, nil)
	got := history(t, r, "a")
	if got.State != recorder.StateFailing || got.Step != "Database.Children.ConfigMap" || got.Error != "exceeded quota" {
		t.Errorf("state %s at step %q: %s", got.State, got.Step, got.Error)
	}
	want := []recorder.Failure{
		{Step: "Database.Children.ConfigMap", Object: "ConfigMap default/a", Error: "exceeded quota"},
		{Step: "Database", Object: "Secret default/a", Error: "forbidden"},
	}
	if diff := cmp.Diff(want, got.History[0].Failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

func TestIsItStillRunning(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.start("a")
	p.enter(read)
	objects, total := r.Objects(recorder.Query{})
	if total != 1 || objects[0].State != recorder.StateStuck || objects[0].Object.Kind != "Database" {
		t.Errorf("got %d objects, %+v", total, objects)
	}
	h := history(t, r, "a")
	if len(h.History) != 1 || h.History[0].Outcome != recorder.Running || len(h.History[0].Steps) != 2 {
		t.Errorf("runs: %+v", h.History)
	}
	p.leave(read, nil)
	p.finish(reconcile.Result{}, nil)
	p.leave(read, nil) // an event of a goroutine that the reconcile did not wait for
	if h := history(t, r, "a"); h.State != recorder.StateSucceeded || !h.RunningSince.IsZero() {
		t.Errorf("after it has finished: state %s, running since %v", h.State, h.RunningSince)
	}
}

func TestWhyDidItRunAfterItWaited(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.wait("a")
	p.wait("a")
	h := history(t, r, "a")
	if h.State != recorder.StateWaiting || h.StaleWaits != 2 || h.Next == nil || len(h.History) != 0 {
		t.Errorf("while it waits: state %s, %d waits, next %v, runs %v", h.State, h.StaleWaits, h.Next, h.History)
	}
	p.noOp("a")
	h = history(t, r, "a")
	got := []observe.CauseType{}
	for _, c := range h.History[0].Causes {
		got = append(got, c.Type)
	}
	want := []observe.CauseType{observe.CauseOwned, observe.CauseOwned, observe.CauseResync}
	if diff := cmp.Diff(want, got); diff != "" || h.StaleWaits != 0 || h.Runs != 1 {
		t.Errorf("%d waits, %d runs, causes (-want +got):\n%s", h.StaleWaits, h.Runs, diff)
	}
}

func TestRunsWithoutAWriteAreCounted(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.noOp("a")
	p.write("a")
	p.noOp("a")
	p.noOp("a")
	p.noOp("a")
	p.write("a")
	h := history(t, r, "a")
	got := []string{}
	for _, run := range h.History {
		got = append(got, fmt.Sprintf("%s %s +%d", run.ID, run.Outcome, run.NoOpsBefore))
	}
	if diff := cmp.Diff([]string{"6 Changed +0", "5 NoOp +2", "2 Changed +1"}, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if h.Runs != 6 || h.NoOps != 4 || h.Writes != 2 {
		t.Errorf("got %d runs, %d without a write, %d writes", h.Runs, h.NoOps, h.Writes)
	}
	if steps := h.History[1].Steps; steps[0].CachedReads != 1 || steps[1].CachedReads != 1 || len(steps[1].Calls) != 0 {
		t.Errorf("reads from caches are counted, got %+v", steps)
	}
}

func TestFailedRunsAreKeptLonger(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	for range 100 {
		p.fail("a", errors.New("quota exceeded"))
	}
	h := history(t, r, "a")
	if ids := len(h.History); ids != 16 {
		t.Errorf("got %d runs, want 16", ids)
	}
	if first := h.History[15].ID; first != "1" || h.History[14].ID != "86" {
		t.Errorf("the first failed run is kept, got %s and then %s", first, h.History[14].ID)
	}
	for range 100 {
		p.write("a")
	}
	failed := 0
	for _, run := range history(t, r, "a").History {
		if run.Outcome == recorder.Failed {
			failed++
		}
	}
	if failed != 16 {
		t.Errorf("got %d failed runs after many that succeeded, want 16", failed)
	}
}

func TestMemoryIsLimited(t *testing.T) {
	const limit = 1 << 20
	r := recorder.New(recorder.Options{Bytes: limit})
	p := &play{to: r}
	p.fail("broken", errors.New("quota exceeded"))
	for i := range 3000 {
		name := fmt.Sprint("object-", i%300)
		p.write(name)
		if bytes := r.Bytes(); bytes > limit {
			t.Fatalf("after %d runs: %d bytes, limit %d", i, bytes, limit)
		}
	}
	if h := history(t, r, "broken"); len(h.History) != 1 {
		t.Errorf("the failed run was dropped before successful ones")
	}
	for i := range 5000 {
		p.fail(fmt.Sprint("other-", i), errors.New(strings.Repeat("x", 5000)))
	}
	if bytes := r.Bytes(); bytes > limit {
		t.Errorf("%d bytes, limit %d", bytes, limit)
	}
	objects, total := r.Objects(recorder.Query{})
	if total == 0 || total >= 5000 || len(objects[0].Error) > 1100 {
		t.Errorf("got %d objects, an error of %d bytes", total, len(objects[0].Error))
	}
}

func TestObjectsAreSortedByTroubleAndFound(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r, from: time.Now()}
	p.noOp("fine")
	p.fail("broken", errors.New("quota exceeded"))
	p.start("loops")
	p.observe(&observe.LoopFound{Run: p.run, Reconciles: 5})
	p.finish(reconcile.Result{}, nil)
	p.wait("waits")
	for _, tc := range []struct {
		name  string
		query recorder.Query
		want  []string
	}{
		{"all, the worst first", recorder.Query{}, []string{"loops", "broken", "waits", "fine"}},
		{"a name", recorder.Query{Name: "default/broken"}, []string{"broken"}},
		{"a kind", recorder.Query{Kind: "databases.example.com", Name: "fine"}, []string{"fine"}},
		{"another kind", recorder.Query{Kind: "configmap"}, nil},
		{"another controller", recorder.Query{Controller: "x"}, nil},
		{"words of the error and the kind", recorder.Query{Search: "QUOTA database"}, []string{"broken"}},
		{"a state", recorder.Query{Search: "looping"}, []string{"loops"}},
		{"a page", recorder.Query{Offset: 1, Limit: 2}, []string{"broken", "waits"}},
		{"after the last", recorder.Query{Offset: 9, Limit: 2}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects, _ := r.Objects(tc.query)
			var got []string
			for _, o := range objects {
				got = append(got, o.Object.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichStepIsExpensiveOrFails(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	p.noOp("a")
	p.fail("b", errors.New("quota exceeded"))
	controllers := r.Controllers()
	if len(controllers) != 1 {
		t.Fatalf("got %d controllers", len(controllers))
	}
	c := controllers[0]
	got := []string{fmt.Sprintln(c.Name, c.Runs, c.NoOps, c.Failures, c.Objects, c.Trouble, c.Causes)}
	for _, s := range c.Steps {
		path := strings.Join(s.Path, ".")
		got = append(got, fmt.Sprintln(path, s.Runs, s.Failures, s.RecentFailures, s.Mean(), s.LastError))
	}
	want := []string{
		"database 2 1 1 2 1 map[Resync:1 Retry:1]",
		"Database 2 1 1 1ms",
		"Database.ReadSecret 1 0 0 1ms",
		"Database.Children 2 1 1 1ms",
		"Database.Children.ConfigMap 2 1 1 1ms quota exceeded",
	}
	for i := range got {
		got[i] = strings.TrimSpace(got[i])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("controller (-want +got):\n%s", diff)
	}
}

func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	r := recorder.New(recorder.Options{Bytes: 1 << 18})
	var playing, reading sync.WaitGroup
	for w := range 4 {
		playing.Go(func() {
			p := &play{to: r}
			for i := range 300 {
				name := fmt.Sprint("object-", (w+i)%50)
				p.noOp(name)
				p.write(name)
				p.fail(name, errors.New("no"))
			}
		})
	}
	stop := make(chan struct{})
	reading.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			objects, _ := r.Objects(recorder.Query{Search: "database"})
			for _, o := range objects[:min(3, len(objects))] {
				r.Object(o.Controller, types.NamespacedName{Namespace: o.Object.Namespace, Name: o.Object.Name})
			}
			r.Controllers()
		}
	})
	playing.Wait()
	close(stop)
	reading.Wait()
	if runs := r.Controllers()[0].Runs; runs != 3600 {
		t.Errorf("got %d runs, want 3600", runs)
	}
}

func TestNoOpRunsAllocateLittle(t *testing.T) {
	r := recorder.New(recorder.Options{})
	with, without := &play{to: r}, &play{to: observe.Nop}
	with.noOp("a")
	with.noOp("a")
	baseline := testing.AllocsPerRun(100, func() { without.noOp("a") })
	if added := testing.AllocsPerRun(100, func() { with.noOp("a") }) - baseline; added > 15 {
		t.Errorf("a run without a write allocates %v times more, want at most 15", added)
	}
}

// How many requests no longer waited for the caches? The recorder counts events, also without metrics.
func TestHowManyRequestsNoLongerWaited(t *testing.T) {
	r := recorder.New(recorder.Options{})
	run := &observe.Run{Controller: "database"}
	for _, reason := range []observe.DeferReason{observe.DeferStaleTimeout, observe.DeferLoop, observe.DeferStaleTimeout} {
		r.Observe(t.Context(), &observe.Deferred{Run: run, Reconciler: "DatabaseResourceReconciler", Reason: reason})
	}
	r.Observe(t.Context(), &observe.Deferred{Reason: observe.DeferStaleTimeout}) // outside of a controller
	got := map[string]int64{}
	for _, c := range r.Controllers() {
		got[c.Name] = c.CacheTimeouts
	}
	if diff := cmp.Diff(map[string]int64{"database": 2}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
