// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/heap"
	"trueup.dev/observe"
)

// TestLabelsHaveNoNames sends events of few and of many objects. The series must be the same.
func TestLabelsHaveNoNames(t *testing.T) {
	few := recorded(t, func(l observe.Listener) { busy(l, 10) })
	many := recorded(t, func(l observe.Listener) { busy(l, 10_000) })
	if len(few) < 20 {
		t.Fatalf("got only %d series:\n%s", len(few), strings.Join(few, "\n"))
	}
	name := func(series string) string { return series[:strings.LastIndex(series, " ")] }
	var a, b []string
	for i := range few {
		a = append(a, name(few[i]))
	}
	for i := range many {
		b = append(b, name(many[i]))
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("series of 10 and of 10,000 objects (-10 +10,000):\n%s", diff)
	}
}

// TestMemoryDoesNotGrowWithObjects compares the memory of the metrics after 20,000 objects, twice as many as are kept,
// and after 100,000.
func TestMemoryDoesNotGrowWithObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("sends events of 100,000 objects")
	}
	heapAfter := func(objects int) int64 {
		before := heap.InUse()
		registry := prometheus.NewRegistry()
		l, err := New(registry)
		if err != nil {
			t.Fatal(err)
		}
		busy(l, objects)
		failAll(l, objects)
		defer runtime.KeepAlive(l)
		return heap.InUse() - before
	}
	few, many := heapAfter(2*maxObjects), heapAfter(100_000)
	t.Logf("%d KB with 20,000 objects, %d KB with 100,000", few>>10, many>>10)
	if few < 100<<10 {
		t.Errorf("only %d bytes are measured", few)
	}
	// A map in which elements replace others may double.
	if many > 2*few {
		t.Errorf("the metrics have %d bytes with 100,000 objects, and %d with 20,000", many, few)
	}
}

// failAll sends events of objects that are created and fail.
func failAll(l observe.Listener, objects int) {
	for i := range objects {
		name := fmt.Sprintf("object-%d", i)
		created := observe.Cause{Type: observe.CauseObject, Verb: observe.Created, At: start}
		created.SetObjects(nil, object(name, 1, 0, ""))
		run := newRun(name, created)
		send(l, &observe.ReconcileStarted{Run: run}, &observe.ReconcileFinished{Run: run, Err: errTest})
	}
}

// busy sends events of objects that are created, own children, fail and become ready.
func busy(l observe.Listener, objects int) {
	for i := range objects {
		name := fmt.Sprintf("object-%d", i)
		created := observe.Cause{Type: observe.CauseObject, Verb: observe.Created, At: start}
		created.SetObjects(nil, object(name, 1, 0, ""))
		run := newRun(name, created)
		child := []string{"Website", "Pages", "child-of-" + name}
		ready := &observe.Call{Run: run, Verb: observe.VerbPatch, Kind: website, Object: run.Object, Subresource: "status"}
		ready.SetObjects(nil, object(name, 1, 1, metav1.ConditionTrue))
		send(l,
			&observe.ReconcileStarted{Run: run},
			&observe.StepStarted{Run: run, Path: []string{"Website"}},
			&observe.StepStarted{Run: run, Path: child[:2]},
			&observe.StepStarted{Run: run, Path: child, Item: true},
			&observe.Call{Run: run, Path: child, Verb: observe.VerbCreate, Kind: website, Object: run.Object},
			&observe.StepFinished{Run: run, Path: child, Item: true, Outcome: observe.Succeeded},
			&observe.StepFinished{Run: run, Path: child[:2]},
			&observe.StepFinished{Run: run, Path: []string{"Website"}},
			&observe.ReconcileFinished{
				Run: run, Err: errTest, Failures: []observe.Failure{{Step: strings.Join(child, "."), Err: errTest}},
			},
			&observe.ReconcileStarted{Run: run},
			ready,
			&observe.ReconcileFinished{Run: run, Result: reconcile.Result{RequeueAfter: time.Minute}},
		)
	}
}

// TestManyWorkers sends events of several workers at once. The race detector checks it too.
func TestManyWorkers(t *testing.T) {
	const workers, objects = 8, 200
	got := recorded(t, func(l observe.Listener) {
		var all sync.WaitGroup
		for range workers {
			all.Go(func() { busy(l, objects) })
		}
		all.Wait()
	})
	for _, want := range []string{
		fmt.Sprintf("trueup_reconcile_causes_total{cause=Object,controller=website} %d", 2*workers*objects),
		fmt.Sprintf("trueup_steps_total{controller=website,outcome=Succeeded,step=Website.Pages.*} %d", workers*objects),
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no series %s in:\n%s", want, strings.Join(got, "\n"))
		}
	}
}

func TestStepsAreLimited(t *testing.T) {
	got := recorded(t, func(l observe.Listener) {
		for i := range 2 * maxSteps {
			path := []string{"Root", fmt.Sprint(i), "Below"}
			send(l, &observe.StepFinished{Run: newRun("a"), Path: path, Outcome: observe.Failed})
		}
	})
	steps := only(got, "trueup_steps_total")
	if len(steps) > maxSteps+1 {
		t.Errorf("got %d steps", len(steps))
	}
	if want := "trueup_steps_total{controller=website,outcome=Failed,step=other} "; !slices.ContainsFunc(steps,
		func(s string) bool { return strings.HasPrefix(s, want) }) {
		t.Errorf("no series %s", want)
	}
}

func TestObjectsAreLimited(t *testing.T) {
	got := recorded(t, func(l observe.Listener) {
		failAll(l, maxObjects+10)
		kept := l.(*listener)
		if len(kept.failing.objects) != maxObjects || len(kept.converging.objects) != maxObjects {
			t.Errorf("kept %d failing and %d converging objects", len(kept.failing.objects), len(kept.converging.objects))
		}
	})
	want := []string{
		"trueup_failing_objects{controller=website,step=} 10000",
		"trueup_converging_objects{controller=website,kind=Website.example.dev} 10000",
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("no series %s", w)
		}
	}
}

// BenchmarkNoOpReconcile measures the events of a reconcile that does nothing, with five steps, while other objects
// fail and converge.
func BenchmarkNoOpReconcile(b *testing.B) {
	listener, err := New(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	busy(listener, 100)
	created := observe.Cause{Type: observe.CauseObject, Verb: observe.Created, At: start}
	created.SetObjects(nil, object("new", 1, 0, ""))
	run := newRun("new", created)
	send(listener, &observe.ReconcileStarted{Run: run}, &observe.ReconcileFinished{Run: run, Err: errTest})

	run = newRun("quiet", observe.Cause{Type: observe.CauseObject, Verb: observe.Updated, Count: 1})
	var started, finished []observe.Event
	for _, path := range [][]string{
		{"Website"},
		{"Website", "Sequence"},
		{"Website", "Sequence", "0"},
		{"Website", "Sequence", "1"},
		{"Website", "Sequence", "2"},
	} {
		started = append(started, &observe.StepStarted{Run: run, Path: path})
		finished = append(finished, &observe.StepFinished{Run: run, Path: path, Outcome: observe.Succeeded})
	}
	reconcileStarted := &observe.ReconcileStarted{Run: run}
	reconcileFinished := &observe.ReconcileFinished{Run: run}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		listener.Observe(ctx, reconcileStarted)
		for i := range started {
			listener.Observe(ctx, started[i])
			listener.Observe(ctx, finished[i])
		}
		listener.Observe(ctx, reconcileFinished)
	}
}
