// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
)

var (
	deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	start      = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	errTest    = errors.New("out of quota")
)

// run is a reconcile some minutes after start.
type run struct {
	minute int
	name   string
	writes int
	noOp   bool
	waits  bool
	result reconcile.Result
	err    error
	panics bool
}

func (r run) send(l observe.Listener) {
	if r.name == "" {
		r.name = "a"
	}
	of := &observe.Run{
		ID: fmt.Sprintf("id-%d", r.minute), Controller: "website",
		Object:  types.NamespacedName{Namespace: "default", Name: r.name},
		Started: start.Add(time.Duration(r.minute) * time.Minute),
		Causes:  []observe.Cause{{Type: observe.CauseRequeue, Count: 1}},
	}
	finished := &observe.ReconcileFinished{
		Run: of, Result: r.result, Err: r.err, Panicked: r.panics, Duration: 12 * time.Millisecond,
	}
	if r.err != nil {
		finished.Failures = []observe.Failure{{Step: "Website.Child", Object: "Deployment default/b", Err: r.err}}
	}
	events := []observe.Event{&observe.ReconcileStarted{Run: of}}
	if r.waits {
		events = append(events, &observe.StaleWait{Run: of})
	}
	for i := range r.writes {
		events = append(events, &observe.Call{
			Run: of, Path: []string{"Website", "Child"}, Verb: observe.VerbCreate, Kind: deployment,
			Object: types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("b%d", i)}, NoOp: r.noOp,
		})
	}
	for _, event := range append(events, finished) {
		l.Observe(context.Background(), event)
	}
}

func lineOf(minute int, name, rest string) string {
	return fmt.Sprintf(`"controller"="website" "namespace"="default" "name"=%q "reconcileID"="id-%d" "causes"=["Requeue"] %s`,
		name, minute, rest)
}

func TestWhichReconcilesHaveALine(t *testing.T) {
	const (
		repeated = `"level"=0 "msg"="Repeated %d times: %s" "controller"="website" "namespace"="default" "name"="a"`
		ok       = `"level"=0 "msg"="Reconciled" `
		bad      = `"level"=0 "msg"="Reconcile failed" `
		failed   = `"duration"="12ms" "result"="error" "failed"=["Website.Child: Deployment default/b"] "error"="out of quota"`
		wrote    = `"steps"=["Website.Child"] "writes"=["create Deployment.apps default/b0"] "duration"="12ms" "result"="success"`
		quiet    = `"duration"="12ms" "result"="success"`
	)
	cases := map[string]struct {
		runs []run
		want []string
	}{
		"nothing done": {runs: []run{{}, {minute: 1, result: reconcile.Result{RequeueAfter: time.Minute}}}},
		"a write":      {runs: []run{{writes: 1}}, want: []string{ok + lineOf(0, "a", wrote)}},
		"a write without a change, with a requeue": {
			runs: []run{{writes: 1, noOp: true, result: reconcile.Result{RequeueAfter: time.Minute}}},
			want: []string{ok + lineOf(0, "a", `"steps"=["Website.Child"] `+
				`"writes"=["create Deployment.apps default/b0: unchanged"] "duration"="12ms" "result"="requeue after 1m0s"`)},
		},
		"fails again and again, then recovers": {
			runs: []run{{err: errTest}, {minute: 1, err: errTest}, {minute: 2, err: errTest}, {minute: 3}, {minute: 4}},
			want: []string{
				bad + lineOf(0, "a", failed),
				fmt.Sprintf(repeated, 2, "Reconcile failed"),
				ok + lineOf(3, "a", quiet),
			},
		},
		"fails for longer than the interval": {
			runs: []run{{err: errTest}, {minute: 9, err: errTest}, {minute: 10, err: errTest}},
			want: []string{
				bad + lineOf(0, "a", failed),
				fmt.Sprintf(repeated, 1, "Reconcile failed"),
				bad + lineOf(10, "a", failed),
			},
		},
		"waits for the caches after a failure": {
			runs: []run{{err: errTest}, {minute: 1, waits: true}, {minute: 2, err: errTest}},
			want: []string{bad + lineOf(0, "a", failed)},
		},
		"two objects fail": {
			runs: []run{{err: errTest}, {name: "b", err: errTest}, {minute: 1, err: errTest}},
			want: []string{bad + lineOf(0, "a", failed), bad + lineOf(0, "b", failed)},
		},
		"panics": {
			runs: []run{{panics: true}},
			want: []string{`"level"=0 "msg"="Reconcile panicked" ` + lineOf(0, "a", `"duration"="12ms" "result"="panic"`)},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			log := funcr.New(func(_, args string) { got = append(got, args) }, funcr.Options{})
			l := New(log, Options{})
			for _, r := range c.runs {
				r.send(l)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if kept := len(l.(*listener).records); kept != 0 {
				t.Errorf("%d records are left", kept)
			}
		})
	}
}

func TestWhyAReconcileRan(t *testing.T) {
	before := &corev1.ConfigMap{Data: map[string]string{"password": "a"}}
	after := &corev1.ConfigMap{Data: map[string]string{"password": "b"}}
	after.Labels = map[string]string{"a": "b"}
	after.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", Time: &metav1.Time{Time: start}}}
	updated := observe.Cause{
		Type: observe.CauseOwned, Verb: observe.Updated, Count: 1,
		Kind:   schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Object: types.NamespacedName{Namespace: "default", Name: "b"},
	}
	updated.SetObjects(before, after)
	got := causes(&observe.Run{Causes: []observe.Cause{updated, {Type: observe.CauseResync}}, OmittedCauses: 3})
	want := []string{"Owned ConfigMap default/b Updated: labels, data by kubectl-edit", "Resync", "and 3 more"}
	if diff := cmp.Diff(want, got); diff != "" && !strings.Contains(got[0], "data, labels") {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

func TestManyWritesAreCut(t *testing.T) {
	var got string
	l := New(funcr.NewJSON(func(obj string) { got = obj }, funcr.Options{}), Options{})
	run{writes: maxWrites + 5}.send(l)
	var fields struct{ Writes []string }
	if err := json.Unmarshal([]byte(got), &fields); err != nil {
		t.Fatal(err)
	}
	if len(fields.Writes) != maxWrites+1 || fields.Writes[maxWrites] != "and 5 more" {
		t.Errorf("got writes %q", fields.Writes)
	}
}

func TestVerbosity(t *testing.T) {
	lines := 0
	log := funcr.New(func(string, string) { lines++ }, funcr.Options{Verbosity: 1})
	for verbosity, want := range map[int]int{0: 1, 1: 1, 2: 0} {
		lines = 0
		run{writes: 1}.send(New(log, Options{Verbosity: verbosity}))
		if lines != want {
			t.Errorf("verbosity %d: got %d lines, want %d", verbosity, lines, want)
		}
	}
}

func TestLinesAreLimited(t *testing.T) {
	l := New(funcr.New(func(string, string) {}, funcr.Options{}), Options{}).(*listener)
	for i := range maxLines + 10 {
		run{name: fmt.Sprint(i), err: errTest}.send(l)
	}
	if len(l.lines.last) != maxLines || l.lines.failing.Load() != maxLines {
		t.Errorf("kept %d lines, %d of them failed", len(l.lines.last), l.lines.failing.Load())
	}
}

// TestEncoders writes a line with both encoders of zap.
func TestEncoders(t *testing.T) {
	write := func(encoder zap.Opts) string {
		var out bytes.Buffer
		log := zap.New(zap.WriteTo(&out), encoder)
		run{writes: 2}.send(New(log, Options{}))
		return out.String()
	}
	var fields struct {
		Msg    string
		Name   string
		Causes []string
		Writes []string
	}
	if err := json.Unmarshal([]byte(write(zap.JSONEncoder())), &fields); err != nil {
		t.Fatal(err)
	}
	if fields.Msg != "Reconciled" || fields.Name != "a" || len(fields.Causes) != 1 || len(fields.Writes) != 2 {
		t.Errorf("JSON: got %+v", fields)
	}
	human := write(zap.ConsoleEncoder())
	const want = `"writes": ["create Deployment.apps default/b0", "create Deployment.apps default/b1"]`
	if !strings.Contains(human, "Reconciled") || !strings.Contains(human, want) || strings.Count(human, "\n") != 1 {
		t.Errorf("console: got %s", human)
	}
}

func BenchmarkNoOpReconcile(b *testing.B) {
	l := New(logr.New(discard{}), Options{})
	run{name: "failing", err: errTest}.send(l)
	of := &observe.Run{Controller: "website", Object: types.NamespacedName{Name: "a"}}
	started, finished := &observe.ReconcileStarted{Run: of}, &observe.ReconcileFinished{Run: of}
	b.ReportAllocs()
	for b.Loop() {
		l.Observe(context.Background(), started)
		l.Observe(context.Background(), finished)
	}
}

// discard is an enabled sink.
type discard struct{}

func (discard) Init(logr.RuntimeInfo)            {}
func (discard) Enabled(int) bool                 { return true }
func (discard) Info(int, string, ...any)         {}
func (discard) Error(error, string, ...any)      {}
func (d discard) WithValues(...any) logr.LogSink { return d }
func (d discard) WithName(string) logr.LogSink   { return d }
