// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// below returns a ResourceReconciler with a tree that contains the handler of a bench.
func below(b *bench, tree sub) *reconcilers.ResourceReconciler[*fixture.Resource] {
	b.WithEdge = operator.AsSubReconciler[*fixture.Resource](b.reconciler()) // not below a Controller
	return &reconcilers.ResourceReconciler[*fixture.Resource]{Reconciler: tree, Config: b.config}
}

// lazily returns a reconciler that looks up the handler of a bench at each call.
func lazily(b *bench) sub {
	return &reconcilers.SyncReconciler[*fixture.Resource]{
		SyncDuringFinalization: true,
		SyncWithResult: func(ctx context.Context, r *fixture.Resource) (reconcilers.Result, error) {
			return b.Reconcile(ctx, r)
		},
	}
}

func TestWithEdge_BelowWithFinalizer(t *testing.T) {
	b := newBench(t, version("a", 1, 1))
	root := below(b, &reconcilers.WithFinalizer[*fixture.Resource]{
		Finalizer: testFinalizer,
		Reconciler: reconcilers.Sequence[*fixture.Resource]{
			lazily(b),
			&reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(_ context.Context, r *fixture.Resource) error {
				r.Status.Fields = map[string]string{"handled": r.Spec.Fields["value"]}
				return nil
			}},
		},
	})
	b.Finalizers, b.React = []string{testFinalizer}, operator.ReactSpec
	request := func(want ...error) {
		t.Helper()
		_, err := root.Reconcile(t.Context(), testRequest)
		wantErr(t, err, want...)
	}
	request()
	b.want(t, "Created a 1")
	equal(t, "finalizers", []string{testFinalizer}, b.stored().Finalizers)
	equal(t, "status", map[string]string{"handled": "1"}, b.stored().Status.Fields)

	changed := b.stored()
	changed.Generation, changed.Spec.Fields["value"] = 2, "2"
	if err := b.server.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	b.errs = []error{errTest}
	request(errTest)
	equal(t, "status after a failure", map[string]string{"handled": "1"}, b.stored().Status.Fields)
	request()
	b.want(t, "Updated a 1>2", "Updated a 1>2, attempt 1")
	equal(t, "status", map[string]string{"handled": "2"}, b.stored().Status.Fields)

	if err := b.server.Delete(t.Context(), b.stored()); err != nil {
		t.Fatal(err)
	}
	b.errs = []error{errTest}
	b.RetryPolicy = never
	request(reconcile.TerminalError(nil))
	request() // no change, and it still exists
	b.want(t, "Deleted a 2>2")
	equal(t, "finalizers of what was given up", []string{testFinalizer}, b.stored().Finalizers)
	b.resyncs(b.stored())
	request()
	b.want(t, "Deleted a 2>2")
	if err := b.server.Get(t.Context(), testRequest.NamespacedName, &fixture.Resource{}); err == nil {
		t.Error("the resource still exists")
	}
}

// Below a cast the resource has another Go type than in the cache.
func TestWithEdge_BelowCastResource(t *testing.T) {
	var lines []string
	handler := operator.WatcherReconciler(watcher[*fixture.ResourceNoStatus]{&lines})
	cast := &reconcilers.CastResource[*fixture.Resource, *fixture.ResourceNoStatus]{Reconciler: handler}
	events := handler.Events(&fixture.Resource{})
	ctx := newWorld(t).context()
	see := func(r *fixture.Resource) {
		t.Helper()
		if _, err := cast.Reconcile(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	a := version("a", 1, 1)
	events.Create(event.CreateEvent{Object: a})
	see(a)
	events.Update(event.UpdateEvent{ObjectOld: a, ObjectNew: version("a", 2, 2)})
	see(version("a", 2, 2))
	events.Update(event.UpdateEvent{ObjectOld: version("a", 2, 2), ObjectNew: version("b", 1, 3)})
	see(version("b", 1, 3))
	equal(t, "calls", []string{"Add 1", "Update 1>2", "Delete 2", "Add 3"}, lines)
	events.Delete(event.DeleteEvent{Object: version("b", 1, 4)})
	equal(t, "records", 0, handler.Records())
}

// In an ordinary tree, reconcilers can read the action, and are also called for other reasons.
func TestEdgeFrom_InATree(t *testing.T) {
	b := newBench(t)
	var edges []string
	b.WithEdge = &operator.WithEdge[*fixture.Resource]{Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
		Sync: func(ctx context.Context, r *fixture.Resource) error {
			line := fmt.Sprint(operator.EdgeFrom(ctx).Action)
			if previous, ok := operator.PreviousFrom[*fixture.Resource](ctx); ok {
				line += " " + previous.ResourceVersion + ">" + r.ResourceVersion
			}
			if _, ok := operator.PreviousFrom[*corev1.ConfigMap](ctx); ok {
				t.Error("the previous state was returned as a ConfigMap")
			}
			edges = append(edges, line)
			return nil
		},
	}}
	for _, r := range []*fixture.Resource{version("a", 1, 1), version("a", 1, 1), version("a", 1, 2)} {
		b.handle(r)
	}
	equal(t, "edges", []string{"Created", "Resynced 1>1", "Updated 1>2"}, edges)
}

// Events of other kinds that the tree watches are ignored.
func TestWithEdge_EventsOfOtherKinds(t *testing.T) {
	r := operator.WatcherReconciler(watcher[*unstructured.Unstructured]{new([]string)})
	untyped := func(kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("example.com/v1")
		u.SetKind(kind)
		u.SetName("test")
		return u
	}
	events := r.Events(untyped("Widget"))
	for _, other := range []*unstructured.Unstructured{untyped("Gadget")} {
		equal(t, "passes", true, events.Create(event.CreateEvent{Object: other}))
		equal(t, "passes", true, events.Update(event.UpdateEvent{ObjectOld: other, ObjectNew: other}))
		equal(t, "passes", true, events.Delete(event.DeleteEvent{Object: other}))
		equal(t, "passes", true, events.Generic(event.GenericEvent{Object: other}))
		equal(t, "records", 0, r.Records())
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "test"}}
	events.Create(event.CreateEvent{Object: configMap})
	equal(t, "records of a typed one", 0, r.Records())
	events.Create(event.CreateEvent{Object: untyped("Widget")})
	equal(t, "records", 1, r.Records())
	events.Delete(event.DeleteEvent{Object: untyped("Widget")})
	equal(t, "records in the end", 0, r.Records())
}

// A resource that a root skips is not handled, and its record is dropped when it no longer exists.
func TestWithEdge_SkippedResources(t *testing.T) {
	b := newBench(t, version("a", 1, 1))
	root := below(b, lazily(b))
	skip := false
	root.SkipResource = func(context.Context, *fixture.Resource) bool { return skip }
	b.appears(b.stored())
	_, err := root.Reconcile(t.Context(), testRequest)
	wantErr(t, err)
	before := b.stored()
	skip = true
	changed := b.stored()
	changed.Generation, changed.Spec.Fields["value"] = 2, "2"
	if err := b.server.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	b.changes(before, b.stored())
	_, err = root.Reconcile(t.Context(), testRequest)
	wantErr(t, err)
	b.want(t, "Created a 1")
	skip = false
	_, err = root.Reconcile(t.Context(), testRequest)
	wantErr(t, err)
	b.want(t, "Updated a 1>2") // what has happened meanwhile
	b.vanishes(b.stored())
	equal(t, "records", 0, b.Records())
}

func TestWithEdge_Panics(t *testing.T) {
	b := newBench(t)
	calls := 0
	b.WithEdge = operator.AsSubReconciler[*fixture.Resource](&operator.TypedReconciler[*fixture.Resource]{
		ReconcileFunc: func(
			ctx context.Context, req operator.TypedReconcileRequest[*fixture.Resource],
		) (operator.ReconcileResult, error) {
			if calls++; calls == 1 {
				panic(errTest)
			}
			b.lines = append(b.lines, fmt.Sprint(req.Action, " ", operator.EdgeFrom(ctx).Attempt))
			return operator.ReconcileResult{}, nil
		},
	})
	func() {
		defer func() {
			if recovered := recover(); recovered != errTest { //nolint:errorlint // it is passed on as it is
				t.Errorf("recovered: %v", recovered)
			}
		}()
		_, _ = b.see(version("a", 1, 1))
	}()
	b.handle(version("a", 1, 1))
	b.want(t, "Created 1")
}

// The stop of a controller is not a failure. A timeout of a handler is one.
func TestWithEdge_ContextEnds(t *testing.T) {
	asked := 0
	policy := func(error, int) (bool, time.Duration) { asked++; return true, time.Minute }
	for name, tc := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		want int
		next string
	}{
		"stopped": {context.WithCancel, 0, "Created a 1"},
		"out of time": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, 1, "Created a 1, attempt 1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				asked, b.RetryPolicy = 0, policy
				ctx, cancel := tc.end(b.context())
				working := &endless{cancel: cancel, stopped: name == "stopped", next: b.Reconciler}
				b.Reconciler = working
				_, err := b.Reconcile(ctx, version("a", 1, 1))
				cancel()
				wantErr(t, err, ctx.Err())
				equal(t, "asks of the policy", tc.want, asked)
				b.Reconciler = working.next
				time.Sleep(time.Hour)
				b.handle(version("a", 1, 1))
				b.want(t, tc.next)
			})
		})
	}
}

// endless runs until its context ends.
type endless struct {
	reconcilers.SubReconciler[*fixture.Resource]

	cancel  context.CancelFunc
	stopped bool
	next    sub
}

func (e *endless) Reconcile(ctx context.Context, _ *fixture.Resource) (reconcilers.Result, error) {
	if e.stopped {
		e.cancel()
	}
	<-ctx.Done()
	return reconcilers.Result{}, errors.Join(ctx.Err())
}
