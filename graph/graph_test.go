// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/graph"
	internalstep "trueup.dev/internal/engine/step"
	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

func record(t *testing.T, setUp graph.SetUp) *graph.Graph {
	t.Helper()
	g, err := graph.Record(t.Context(), v1.NewScheme(), setUp)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func recordEveryKind(t *testing.T) *graph.Graph {
	t.Helper()
	return record(t, func(ctx context.Context, mgr ctrl.Manager) error {
		return everyKind(reconcilers.NewConfig(mgr, nil, time.Hour)).SetupWithManager(ctx, mgr)
	})
}

// everyKindText is the tree of everyKind. Each watch is listed at the reconciler that registers it.
const everyKindText = `
Root (reconcilers.ResourceReconciler) · for Resource.fixture.trueup.dev · watches Namespace · writes status
└─ reconcilers.WithFinalizer · finalizer test.trueup.dev/one
   └─ reconcilers.Sequence
      ├─ 0: Tracks (reconcilers.SyncReconciler) · tracks Secret
      ├─ 1: Owned (reconcilers.ChildReconciler) · owns ConfigMap
      ├─ 2: Elsewhere (reconcilers.ChildReconciler) · writes ConfigMap · tracks ConfigMap · finalizer test.trueup.dev/2
      ├─ 3: reconcilers.IfThen
      │  ├─ Then: Yes (reconcilers.SyncReconciler)
      │  └─ Else: graph_test.silent · watches Node
      ├─ 4: reconcilers.ForEach
      │  └─ *: Item (reconcilers.SyncReconciler)
      ├─ 5: reconcilers.While
      │  └─ *: Round (reconcilers.SyncReconciler)
      └─ 6: reconcilers.Always
         ├─ 0: reconcilers.TryCatch
         │  ├─ Try: Do (reconcilers.SyncReconciler)
         │  └─ Finally: Clean (reconcilers.SyncReconciler)
         ├─ 1: reconcilers.Advice
         │  └─ Advised (reconcilers.SyncReconciler)
         ├─ 2: SkipSetup (reconcilers.OverrideSetup)
         │  └─ NeverSetUp (reconcilers.SyncReconciler)
         ├─ 3: reconcilers.CastResource
         │  └─ Any (reconcilers.SyncReconciler)
         ├─ 4: reconcilers.SuppressTransientErrors
         │  └─ Flaky (reconcilers.SyncReconciler)
         ├─ 5: Privileged (reconcilers.WithConfig)
         │  └─ Remote (reconcilers.ChildReconciler) · writes ConfigMap · tracks ConfigMap · finalizer test.trueup.dev/3
         ├─ 6: Quota (graph_test.quota) · reads ResourceQuota
         │  └─ nested: Inner (reconcilers.SyncReconciler)
         ├─ 7: reconcilers.Paused
         │  └─ reconcilers.Retry
         │     └─ Retried (reconcilers.SyncReconciler)
         ├─ 8: reconcilers.Steps · finalizer test.trueup.dev/steps
         │  ├─ app: App (reconcilers.SyncReconciler)
         │  └─ db: DB (reconcilers.SyncReconciler)
         └─ 9: reconcilers.Periodic
            └─ reconcilers.RateLimit
               └─ reconcilers.Timeout
                  └─ Limited (reconcilers.SyncReconciler)
`

func TestRecord_WhatDoesItConsistOf(t *testing.T) {
	g := recordEveryKind(t)
	if diff := cmp.Diff(everyKindText, "\n"+g.Text()); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	again := recordEveryKind(t)
	if diff := cmp.Diff(g.Text(), again.Text()); diff != "" {
		t.Errorf("second graph (-first +second):\n%s", diff)
	}
}

func TestOf_EventStyleAndOtherRoots(t *testing.T) {
	want := `
Events (operator.Controller) · for Resource.fixture.trueup.dev · writes status · not set up, watches are unknown
└─ operator.FanOut
   ├─ 0: operator.Opinionated · finalizer test.trueup.dev/watched
   │  └─ Handler: Watcher (operator.WithEdge)
   │     └─ Handler: graph_test.watcher · writes Pod
   ├─ 1: Reconciler (operator.WithEdge)
   │  └─ Tree (reconcilers.SyncReconciler)
   └─ 2: Reconciler (operator.WithEdge)
      └─ Handler: operator.TypedReconciler
Sum (reconcilers.AggregateReconciler) · for ConfigMap · writes ConfigMap · not set up, watches are unknown
└─ reconcilers.Sequence
Hook (reconcilers.AdmissionWebhookAdapter) · for Resource.fixture.trueup.dev
└─ Defaults (reconcilers.SyncReconciler)
Set (reconcilers.ResourceReconciler) · for Resource.fixture.trueup.dev · not set up, watches are unknown
└─ ConfigMapChildSetReconciler (reconcilers.ChildSetReconciler) · writes ConfigMap · finalizer test.trueup.dev/set
graph_test.silent
`
	g := graph.Of(append(otherRoots(inMemory()), nil, silent{})...)
	if diff := cmp.Diff(want, "\n"+g.Text()); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func inMemory() reconcilers.Config {
	scheme := v1.NewScheme()
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&resource{}).WithObjects(&resource{
		ObjectMeta: metaNamed("a"),
	}).Build()
	return reconcilers.Config{
		Client: c, APIReader: c, Recorder: discardEvents{}, Tracker: tracker.New(scheme, time.Hour),
	}
}

// paths keeps the paths of all steps.
type paths struct{ seen []string }

func (p *paths) StepStarted(ctx context.Context, started internalstep.Started) context.Context {
	p.seen = append(p.seen, strings.Join(started.Path, "."))
	return ctx
}

func (*paths) StepFinished(context.Context, internalstep.Finished) {}

// The paths of nodes are the paths of the steps that really run.
func TestFind_WhichReconcilerIsThisStep(t *testing.T) {
	root := everyKind(inMemory())
	observer := &paths{}
	ctx := internalstep.WithObserver(t.Context(), observer)
	if _, err := root.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	g, got := graph.Of(root), map[string]string{}
	for _, path := range observer.seen {
		if n := g.Find(path); n != nil {
			got[path] = n.Path + " " + n.Title()
		}
	}
	if len(observer.seen) < 20 || len(got) != len(observer.seen) {
		t.Errorf("found %d of %d steps", len(got), len(observer.seen))
	}
	for path, want := range map[string]string{
		"Root":                                 "Root Root (reconcilers.ResourceReconciler)",
		"Root.WithFinalizer.1.Owned":           "Root.WithFinalizer.1.Owned Owned (reconcilers.ChildReconciler)",
		"Root.WithFinalizer.3.IfThen.Then.Yes": "Root.WithFinalizer.3.IfThen.Then.Yes Yes (reconcilers.SyncReconciler)",
		"Root.WithFinalizer.4.ForEach.1.Item":  "Root.WithFinalizer.4.ForEach.*.Item Item (reconcilers.SyncReconciler)",
		"Root.WithFinalizer.6.0.TryCatch.Finally.Clean": "Root.WithFinalizer.6.0.TryCatch.Finally.Clean " +
			"Clean (reconcilers.SyncReconciler)",
		"Root.WithFinalizer.6.5.Privileged.Remote": "Root.WithFinalizer.6.5.Privileged.Remote " +
			"Remote (reconcilers.ChildReconciler)",
	} {
		if got[path] != want {
			t.Errorf("step %s: got node %q, want %q", path, got[path], want)
		}
	}
	for path, want := range map[string]string{"Other": "", "Roots": "", "Root.WithFinalizer.1.Owned.x": "Owned"} {
		name := ""
		if n := g.Find(path); n != nil {
			name = n.Name
		}
		if name != want {
			t.Errorf("Find(%q) is %q, want %q", path, name, want)
		}
	}
}

func TestGraph_JSONKeepsEverything(t *testing.T) {
	g := recordEveryKind(t)
	content, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	decoded := &graph.Graph{}
	if err := json.Unmarshal(content, decoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(g, decoded, cmpopts.IgnoreUnexported(graph.Node{})); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(g.Mermaid(), decoded.Mermaid()); diff != "" {
		t.Errorf("drawing of the decoded graph (-want +got):\n%s", diff)
	}
	path := "Root.WithFinalizer.0.Tracks"
	if n := decoded.Find(path); n == nil || n.Path != path {
		t.Errorf("Find in the decoded graph: %v", n)
	}
}

func TestRecord_Webhooks(t *testing.T) {
	g := record(t, func(ctx context.Context, mgr ctrl.Manager) error {
		hook, err := (&reconcilers.AdmissionWebhookAdapter[*resource]{Reconciler: step("Defaults")}).BuildWithContext(ctx)
		if err != nil {
			return err
		}
		mgr.GetWebhookServer().Register("/mutate", hook)
		mgr.GetWebhookServer().Register("/convert", &webhook.Admission{})
		return mgr.Add(manager.RunnableFunc(func(context.Context) error { return nil }))
	})
	want := `
admission.Webhook · webhook /convert
ResourceAdmissionWebhookAdapter (reconcilers.AdmissionWebhookAdapter) · webhook /mutate · ` +
		"for Resource.fixture.trueup.dev\n└─ Defaults (reconcilers.SyncReconciler)\n"
	if diff := cmp.Diff(want, "\n"+g.Text()); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestRecord_Mistakes(t *testing.T) {
	errSetUp := errors.New("no backups")
	for name, tc := range map[string]struct {
		setUp graph.SetUp
		want  string
	}{
		"nothing added": {
			func(context.Context, ctrl.Manager) error { return nil },
			"graph: set-up adds neither a controller nor a webhook to the manager",
		},
		"error":    {func(context.Context, ctrl.Manager) error { return errSetUp }, "graph: set-up failed: no backups"},
		"no setUp": {nil, "graph: a scheme and a set-up function are required"},
		"API call": {
			func(ctx context.Context, mgr ctrl.Manager) error {
				return mgr.GetAPIReader().Get(ctx, types.NamespacedName{Namespace: "a", Name: "a"}, &resource{})
			},
			"this manager has no API server",
		},
	} {
		_, err := graph.Record(t.Context(), v1.NewScheme(), tc.setUp)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want %q", name, err, tc.want)
		}
	}
}

// A name of the user must not break the syntax of a drawing.
func TestGraph_DrawingsEscapeNames(t *testing.T) {
	root := &reconcilers.ResourceReconciler[*resource]{
		Name: "a \"b\" <c>\\\n", Config: inMemory(), Reconciler: step("x"),
	}
	g := graph.Of(root)
	if mermaid := g.Mermaid(); !strings.Contains(mermaid, `["a #quot;b#quot; #lt;c#gt;\ <br/>reconcilers.Res`) {
		t.Errorf("Mermaid:\n%s", mermaid)
	}
	if dot := g.DOT(); !strings.Contains(dot, `label="a \"b\" <c>\\ \nreconcilers.Res`) {
		t.Errorf("DOT:\n%s", dot)
	}
	for _, line := range slices.Concat(strings.Split(g.DOT(), "\n"), strings.Split(g.Mermaid(), "\n")) {
		if strings.Count(strings.ReplaceAll(line, `\"`, ""), `"`)%2 != 0 {
			t.Errorf("unbalanced quotes: %s", line)
		}
	}
}

// A reconciler that contains itself does not lead to an endless graph.
func TestOf_Cycle(t *testing.T) {
	loop := &quota{}
	loop.nested = loop
	want := "Quota (graph_test.quota) · reads ResourceQuota\n└─ nested: graph_test.quota\n"
	if diff := cmp.Diff(want, graph.Of(loop).Text()); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}
