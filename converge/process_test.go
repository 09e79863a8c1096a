// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/sim"
)

// TestCallsThatPanic finds a panic in a call to an external system, as one of the reconciler.
func TestCallsThatPanic(t *testing.T) {
	f := foundIn(t, secretScenario(func(ctx context.Context, e Env, _ *corev1.Secret) (reconcile.Result, error) {
		return reconcile.Result{}, e.Call(ctx, "look", func() error { panic("boom") })
	}))
	if f == nil || f.Violation.Oracle != OracleErrors ||
		f.Violation.Message != "the reconcile of default/a panics: boom" {
		t.Errorf("got %v, want a panic", f)
	}
}

// TestBlockedGoroutines accepts goroutines that outlive a complete run if the oracle of leaks is off: many operators
// have some that end with the program. An incomplete run is a failure in any case.
func TestBlockedGoroutines(t *testing.T) {
	s := secretScenario(func(context.Context, Env, *corev1.Secret) (reconcile.Result, error) {
		go func() { <-make(chan struct{}) }()
		return reconcile.Result{}, nil
	})
	for _, off := range []bool{false, true} {
		if off {
			s.Off = map[Oracle]string{OracleLeaks: "it ends with the program"}
		}
		report := mustCheck(t, s, Options{Seed: 1})
		if f := report.Failure; off != (f == nil) || f != nil && f.Violation.Oracle != OracleLeaks {
			t.Errorf("off: %v: got %v", off, f)
		}
	}
	s.Steps = Steps(Do("wait", func(context.Context, client.Client) error { <-make(chan struct{}); return nil }))
	report := mustCheck(t, s, Options{Seed: 1})
	if f := report.Failure; f == nil || f.Violation.Oracle != OracleLeaks {
		t.Errorf("got %v, want a leak", f)
	}
}

// TestStuckRuns waits for an event outside of the scenario, which happens at the warning.
func TestStuckRuns(t *testing.T) {
	outside := make(chan struct{})
	defer func(before time.Duration, tell func(string)) {
		sim.StuckTime, sim.WarnStuck = before, tell
	}(sim.StuckTime, sim.WarnStuck)
	var stuck atomic.Value
	sim.StuckTime, sim.WarnStuck = time.Millisecond, func(test string) {
		if stuck.CompareAndSwap(nil, test) {
			close(outside)
		}
	}
	p := mustPlan(t, secretScenario(func(context.Context, Env, *corev1.Secret) (reconcile.Result, error) {
		<-outside
		return reconcile.Result{}, nil
	}))
	if o := p.execute(t, nil, p.usual(), nil); len(o.Violations) > 0 {
		t.Error(o.Violations)
	}
	if stuck.Load() != t.Name() {
		t.Errorf("got stuck test %v", stuck.Load())
	}
}

// TestOvertaken finishes one of several workers while another one waits.
func TestOvertaken(t *testing.T) {
	p, reference := referred(t, crowdScenario())
	at := slices.IndexFunc(reference.Points, func(m inject.Injectable) bool { return m.Faults.Has(FaultOvertaken) })
	if at < 0 {
		t.Fatal("no point for FaultOvertaken")
	}
	log := &explain.Timeline{}
	o := p.execute(t, inject.Schedule{{Point: reference.Points[at].Point, Fault: FaultOvertaken}}, p.usual(), log)
	if o.Injected != 1 || len(o.Violations) > 0 {
		t.Errorf("injected %d times, with %v", o.Injected, o.Violations)
	}
	var rival string
	from := slices.IndexFunc(log.Entries, func(e explain.Entry) bool {
		before, after, ok := strings.Cut(e.What, "is overtaken by ")
		rival = after
		return ok && before == ""
	})
	if from < 0 {
		t.Fatal("no line of the fault")
	}
	who := log.Entries[from].Who
	ends := func(name string) int {
		return slices.IndexFunc(log.Entries, func(e explain.Entry) bool { return e.Who == name && e.What == "ends" })
	}
	if ends(rival) < from || ends(who) < ends(rival) {
		t.Errorf("%s ends before %s does:\n%s", who, rival, log.Full())
	}
}

// TestMappersRunOneAtATime makes calls in the mappers of two watches.
func TestMappersRunOneAtATime(t *testing.T) {
	var at, most atomic.Int32
	calls := map[string]int{}
	var mapped handler.MapFunc
	s := copierScenario(false)
	s.New = func(e Env) reconcile.Reconciler {
		mapped = func(ctx context.Context, obj client.Object) []reconcile.Request {
			most.Store(max(most.Load(), at.Add(1)))
			defer at.Add(-1)
			_ = e.Client.List(ctx, &corev1.SecretList{})
			calls[obj.GetName()]++
			return nil
		}
		return &copier{e.Client, false}
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	s.Given = []client.Object{
		&corev1.ServiceAccount{
			ObjectMeta: named("one"),
		}, &corev1.ServiceAccount{ObjectMeta: named("two")}, &corev1.ConfigMap{ObjectMeta: named("three")},
	}
	through := func(ctx context.Context, obj client.Object) []reconcile.Request { return mapped(ctx, obj) }
	s.Watches = []Watch{
		{Object: &corev1.ServiceAccount{}, Requests: through}, {Object: &corev1.ConfigMap{}, Requests: through},
	}
	referred(t, s)
	if most.Load() != 1 || calls["one"] == 0 || calls["two"] == 0 || calls["three"] == 0 {
		t.Errorf("%d mappers at once, called with %v", most.Load(), calls)
	}
}

// TestMappersThatWait lets time pass although a request is due.
func TestMappersThatWait(t *testing.T) {
	s := copierScenario(false)
	s.Watches = []Watch{{Object: &corev1.Secret{}, Requests: func(context.Context, client.Object) []reconcile.Request {
		time.Sleep(10 * time.Millisecond)
		return nil
	}}}
	referred(t, s)
}
