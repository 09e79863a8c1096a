// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
)

var (
	website = schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Website"}
	start   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	errTest = errors.New("out of quota")
)

func newRun(name string, causes ...observe.Cause) *observe.Run {
	if len(causes) == 0 {
		causes = []observe.Cause{{Type: observe.CauseResync, Count: 1}}
	}
	return &observe.Run{
		Controller: "website", Kind: website, Object: types.NamespacedName{Namespace: "default", Name: name},
		Started: start, Causes: causes,
	}
}

// recorded returns the series after f, as "name{labels} value". The value of a histogram is "count/sum".
func recorded(t testing.TB, f func(observe.Listener)) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	listener, err := New(registry)
	if err != nil {
		t.Fatal(err)
	}
	f(listener)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var series []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			value := strconv.FormatFloat(m.GetCounter().GetValue()+m.GetGauge().GetValue(), 'g', -1, 64)
			if h := m.GetHistogram(); h != nil {
				value = fmt.Sprintf("%d/%g", h.GetSampleCount(), h.GetSampleSum())
			}
			series = append(series, fmt.Sprintf("%s{%s} %s", family.GetName(), strings.Join(labels, ","), value))
		}
	}
	return series
}

// only returns the series of a metric that are not zero.
func only(series []string, metric string) []string {
	return slices.DeleteFunc(slices.Clone(series), func(s string) bool {
		return !strings.HasPrefix(s, metric+"{") || strings.HasSuffix(s, " 0")
	})
}

func send(listener observe.Listener, events ...observe.Event) {
	for _, event := range events {
		listener.Observe(context.Background(), event)
	}
}

func TestWhyReconcilesRun(t *testing.T) {
	got := recorded(t, func(l observe.Listener) {
		send(l,
			&observe.ReconcileStarted{Run: newRun("a", observe.Cause{Type: observe.CauseObject, Verb: observe.Updated})},
			&observe.ReconcileStarted{Run: newRun("b",
				observe.Cause{Type: observe.CauseOwned}, observe.Cause{Type: observe.CauseOwned},
				observe.Cause{Type: observe.CauseRetry}, observe.Cause{Type: "Invented"})},
		)
	})
	want := []string{
		"trueup_reconcile_causes_total{cause=Object,controller=website} 1",
		"trueup_reconcile_causes_total{cause=Owned,controller=website} 1",
		"trueup_reconcile_causes_total{cause=Retry,controller=website} 1",
		"trueup_reconcile_causes_total{cause=Unknown,controller=website} 1",
	}
	if diff := cmp.Diff(want, only(got, "trueup_reconcile_causes_total")); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

// TestCauseTypesAreListed compares the types of causes with the constants of package observe.
func TestCauseTypesAreListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../cause.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []observe.CauseType
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Cause") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, observe.CauseType(value))
		return true
	})
	if diff := cmp.Diff(want, causeTypes[:]); diff != "" {
		t.Errorf("types of causes (-want +got):\n%s", diff)
	}
}

func TestWhichStepsAreSlow(t *testing.T) {
	run := newRun("a")
	finished := func(outcome observe.Outcome, path ...string) *observe.StepFinished {
		return &observe.StepFinished{Run: run, Path: path, Outcome: outcome, Duration: time.Second}
	}
	pages := []string{"Website", "Pages"}
	home := append(slices.Clip(pages), "home.html")
	got := recorded(t, func(l observe.Listener) {
		send(l,
			&observe.StepStarted{Run: run, Path: pages},
			&observe.StepStarted{Run: run, Path: home, Item: true},
			finished(observe.Failed, append(slices.Clip(home), "Content")...),
			&observe.StepFinished{Run: run, Path: home, Item: true, Outcome: observe.Failed, Duration: time.Second},
			finished(observe.Halted, pages...),
			finished(observe.Succeeded, "Website"),
			finished(observe.Panicked, "Website"),
		)
	})
	want := []string{
		"trueup_steps_total{controller=website,outcome=Failed,step=Website.Pages.*} 1",
		"trueup_steps_total{controller=website,outcome=Failed,step=Website.Pages.*.Content} 1",
		"trueup_steps_total{controller=website,outcome=Halted,step=Website.Pages} 1",
		"trueup_steps_total{controller=website,outcome=Panicked,step=Website} 1",
		"trueup_steps_total{controller=website,outcome=Succeeded,step=Website} 1",
	}
	if diff := cmp.Diff(want, only(got, "trueup_steps_total")); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	want = []string{
		"trueup_step_duration_seconds{controller=website,step=Website} 2/2",
		"trueup_step_duration_seconds{controller=website,step=Website.Pages} 1/1",
		"trueup_step_duration_seconds{controller=website,step=Website.Pages.*} 1/1",
		"trueup_step_duration_seconds{controller=website,step=Website.Pages.*.Content} 1/1",
	}
	if diff := cmp.Diff(want, only(got, "trueup_step_duration_seconds")); diff != "" {
		t.Errorf("durations (-want +got):\n%s", diff)
	}
}

func TestWhatIsWritten(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	conflict := apierrs.NewConflict(schema.GroupResource{Resource: "deployments"}, "a", errTest)
	run := newRun("a")
	got := recorded(t, func(l observe.Listener) {
		send(l,
			&observe.Call{Run: run, Kind: deployment, Verb: observe.VerbCreate},
			&observe.Call{Run: run, Kind: deployment, Verb: observe.VerbUpdate, NoOp: true},
			&observe.Call{Run: run, Kind: deployment, Verb: observe.VerbUpdate, Err: conflict},
			&observe.Call{Run: run, Kind: deployment, Verb: observe.VerbUpdate, Err: errTest},
			&observe.Call{Run: run, Kind: deployment, Verb: observe.VerbPatch, Apply: true, DryRun: true},
			&observe.Call{Run: run, Kind: deployment, Verb: observe.VerbPatch, Subresource: "status"},
			&observe.Call{Run: run, Kind: deployment, Verb: observe.VerbGet},
			&observe.Call{Run: run, Kind: deployment, Verb: observe.VerbList},
			&observe.Call{Kind: deployment, Verb: observe.VerbDelete},
		)
	})
	const prefix = "trueup_writes_total{controller=website,kind=Deployment.apps,"
	want := []string{
		"trueup_writes_total{controller=,kind=Deployment.apps,result=changed,subresource=,verb=delete} 1",
		prefix + "result=changed,subresource=,verb=create} 1",
		prefix + "result=changed,subresource=status,verb=patch} 1",
		prefix + "result=conflict,subresource=,verb=update} 1",
		prefix + "result=dry-run,subresource=,verb=apply} 1",
		prefix + "result=failed,subresource=,verb=update} 1",
		prefix + "result=unchanged,subresource=,verb=update} 1",
	}
	if diff := cmp.Diff(want, only(got, "trueup_writes_total")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// Is the deletion of an object that does not exist a failed write? It changes nothing.
func TestIsADeletionOfNothingAFailure(t *testing.T) {
	config := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	gone := apierrs.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "a")
	run := newRun("a")
	got := recorded(t, func(l observe.Listener) {
		send(l,
			&observe.Call{Run: run, Kind: config, Verb: observe.VerbDelete, Err: gone},
			&observe.Call{Run: run, Kind: config, Verb: observe.VerbDelete, Err: errTest},
			&observe.Call{Run: run, Kind: config, Verb: observe.VerbUpdate, Err: gone},
		)
	})
	const prefix = "trueup_writes_total{controller=website,kind=ConfigMap,"
	want := []string{
		prefix + "result=failed,subresource=,verb=delete} 1",
		prefix + "result=failed,subresource=,verb=update} 1",
		prefix + "result=unchanged,subresource=,verb=delete} 1",
	}
	if diff := cmp.Diff(want, only(got, "trueup_writes_total")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestWhichStepFails(t *testing.T) {
	failed := func(name string, steps ...string) *observe.ReconcileFinished {
		e := &observe.ReconcileFinished{Run: newRun(name), Err: errTest}
		for _, s := range steps {
			e.Failures = append(e.Failures, observe.Failure{Step: s, Err: errTest})
		}
		return e
	}
	panicking := newRun("a")
	refused := observe.Failure{Step: "Website.Pages.home.html", Object: "Page default/a", Err: errTest}
	steps := []observe.Event{
		&observe.StepFinished{Run: newRun("a"), Path: []string{"Website", "Pages"}},
		&observe.StepStarted{Run: newRun("a"), Path: []string{"Website", "Pages", "home.html"}, Item: true},
		&observe.StepFinished{Run: newRun("a"), Path: []string{"Website", "my.step"}},
	}
	cases := map[string]struct {
		events []observe.Event
		want   []string
	}{
		"nothing failed": {events: []observe.Event{&observe.ReconcileFinished{Run: newRun("a")}}},
		"in several steps": {
			events: []observe.Event{failed("a", "Website.Pages.home.html", "Website.Pages.about.html.X", "Website.my.step")},
			want:   []string{"{controller=website,step=Website.Pages.*} 1", "{controller=website,step=Website.my.step} 1"},
		},
		"again, in another step": {
			events: []observe.Event{failed("a", "Website.Pages.x"), failed("a", "Website.my.step"), failed("b", "Website")},
			want:   []string{"{controller=website,step=Website} 1", "{controller=website,step=Website.my.step} 1"},
		},
		"until it succeeds": {
			events: []observe.Event{
				failed("a", "Website"), failed("b", "Website"), &observe.ReconcileFinished{Run: newRun("a")},
			},
			want: []string{"{controller=website,step=Website} 1"},
		},
		"while it waits for the caches": {
			events: []observe.Event{
				failed("a", "Website"), &observe.StaleWait{Run: newRun("a")}, &observe.ReconcileFinished{Run: newRun("a")},
			},
			want: []string{"{controller=website,step=Website} 1"},
		},
		"while another replica may be the leader": {
			events: []observe.Event{
				failed("a", "Website"), &observe.Deferred{Run: newRun("a"), Reason: observe.DeferLease},
				&observe.ReconcileFinished{Run: newRun("a")},
			},
			want: []string{"{controller=website,step=Website} 1"},
		},
		"until it succeeds after a wait": {
			events: []observe.Event{
				failed("a", "Website"), &observe.StaleWait{Run: newRun("a")}, &observe.ReconcileFinished{Run: newRun("a")},
				&observe.ReconcileFinished{Run: newRun("a")},
			},
		},
		"no step is known": {
			events: []observe.Event{failed("a"), failed("b", "Elsewhere")},
			want:   []string{"{controller=website,step=} 2"},
		},
		"a panic": {
			events: []observe.Event{
				&observe.StepFinished{Run: panicking, Path: []string{"Website", "Pages"}, Outcome: observe.Panicked},
				&observe.StepFinished{Run: panicking, Path: []string{"Website"}, Outcome: observe.Panicked},
				&observe.ReconcileFinished{Run: panicking, Panicked: true},
			},
			want: []string{"{controller=website,step=Website.Pages} 1"},
		},
		"a panic that a step recovers": {
			events: []observe.Event{
				&observe.StepFinished{Run: panicking, Path: []string{"Website", "Pages"}, Outcome: observe.Panicked},
				&observe.ReconcileFinished{Run: panicking},
			},
		},
		"a refused write, and no error": {
			events: []observe.Event{
				&observe.ReconcileFinished{Run: newRun("a"), Refused: []observe.Failure{refused}},
			},
			want: []string{"{controller=website,step=Website.Pages.*} 1"},
		},
		"a panic outside of steps": {
			events: []observe.Event{&observe.ReconcileFinished{Run: panicking, Panicked: true}},
			want:   []string{"{controller=website,step=} 1"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := only(recorded(t, func(l observe.Listener) {
				send(l, steps...)
				send(l, c.events...)
				if left := l.(*listener).failing.noted.Load(); left != 0 {
					t.Errorf("notes of %d runs are left", left)
				}
			}), "trueup_failing_objects")
			for i := range c.want {
				c.want[i] = "trueup_failing_objects" + c.want[i]
			}
			if diff := cmp.Diff(c.want, got, cmpEmpty); diff != "" {
				t.Errorf("failing objects (-want +got):\n%s", diff)
			}
		})
	}
}

var cmpEmpty = cmp.FilterValues(func(a, b []string) bool { return len(a)+len(b) == 0 }, cmp.Ignore())

// object returns a website. The condition Ready is missing if ready is "", and the observed generation if it is 0.
func object(name string, generation, observed int64, ready metav1.ConditionStatus) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(website)
	obj.SetNamespace("default")
	obj.SetName(name)
	obj.SetGeneration(generation)
	status := map[string]any{}
	if observed != 0 {
		status["observedGeneration"] = observed
	}
	if ready != "" {
		status["conditions"] = []any{map[string]any{"type": "Ready", "status": string(ready)}}
	}
	obj.Object["status"] = status
	return obj
}

func TestNewReportsRegisteredNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	taken := newVectors().failingNow
	registry.MustRegister(taken)
	if _, err := New(registry); err == nil {
		t.Fatal("New registered a name twice")
	}
	registry.Unregister(taken)
	if _, err := New(registry); err != nil {
		t.Errorf("New left metrics behind after an error: %v", err)
	}
}

func TestDefaultIsRegisteredOnce(t *testing.T) {
	if Default() != Default() {
		t.Error("Default returned two listeners")
	}
}

// A controller that cannot start has no other series.
func TestWhichControllerCannotStart(t *testing.T) {
	budgets := schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
	wait := observe.CacheWait{Controller: "website", Kind: budgets}
	got := recorded(t, func(l observe.Listener) {
		l.Observe(t.Context(), &wait)
		l.Observe(t.Context(), &observe.CacheWait{Controller: "website", Kind: website})
		l.Observe(t.Context(), &observe.CacheWait{Controller: "website", Kind: website, Ended: true})
	})
	want := []string{"trueup_unsynced_caches{controller=website,kind=PodDisruptionBudget.policy} 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestHowManyReconcilesAreStuck(t *testing.T) {
	path := []string{"Website", "Slow"}
	got := recorded(t, func(l observe.Listener) {
		for i, name := range []string{"a", "b"} {
			run := newRun(name)
			l.Observe(t.Context(), &observe.ReconcileStarted{Run: run})
			l.Observe(t.Context(), &observe.StuckFound{Run: run, Path: path})
			if i == 0 {
				l.Observe(t.Context(), &observe.ReconcileFinished{Run: run})
			}
		}
	})
	got = slices.DeleteFunc(got, func(series string) bool { return !strings.HasPrefix(series, "trueup_stuck_objects") })
	want := []string{"trueup_stuck_objects{controller=website,step=Website.Slow} 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}
