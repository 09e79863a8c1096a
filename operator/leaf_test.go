// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

func asErr[T error](err error, target *T) bool { return errors.As(err, target) }

// watcher records its calls.
type watcher[T resource.Object] struct{ lines *[]string }

func (w watcher[T]) note(line string) error {
	*w.lines = append(*w.lines, line)
	return nil
}

func (w watcher[T]) Add(_ context.Context, obj T) error {
	return w.note("Add " + obj.GetResourceVersion())
}

func (w watcher[T]) Update(_ context.Context, previous, obj T) error {
	return w.note("Update " + previous.GetResourceVersion() + ">" + obj.GetResourceVersion())
}

func (w watcher[T]) Delete(_ context.Context, obj T) error {
	return w.note("Delete " + obj.GetResourceVersion())
}

// syncer is a watcher with a Sync.
type syncer[T resource.Object] struct{ watcher[T] }

func (w syncer[T]) Sync(_ context.Context, obj T) error {
	return w.note("Sync " + obj.GetResourceVersion())
}

func TestWatcherReconciler(t *testing.T) {
	var lines []string
	typed, untyped := watcher[*fixture.Resource]{&lines}, watcher[resource.Object]{&lines}
	for name, tc := range map[string]struct {
		watcher operator.TypedWatcher[*fixture.Resource]
		full    operator.PreviousState
		want    []string
	}{
		"typed": {typed, operator.PreviousFull, []string{"Add 1", "Update 1>2", "Update 2>2", "Delete 3"}},
		"typed, with Sync": {
			syncer[*fixture.Resource]{typed}, operator.PreviousFull, []string{"Sync 1", "Update 1>2", "Sync 2", "Delete 3"},
		},
		"untyped": {
			operator.Untyped[*fixture.Resource](untyped), operator.PreviousFull,
			[]string{"Add 1", "Update 1>2", "Update 2>2", "Delete 3"},
		},
		"untyped, with Sync": {
			operator.Untyped[*fixture.Resource](syncer[resource.Object]{untyped}), operator.PreviousFull,
			[]string{"Sync 1", "Update 1>2", "Sync 2", "Delete 3"},
		},
		"widened": {
			operator.Untyped[*fixture.Resource](operator.WidenWatcher(operator.TypedWatcher[*fixture.Resource](typed))),
			operator.PreviousFull,
			[]string{"Add 1", "Update 1>2", "Update 2>2", "Delete 3"},
		},
		"widened, with Sync": {
			operator.Untyped[*fixture.Resource](
				operator.WidenWatcher(operator.TypedWatcher[*fixture.Resource](syncer[*fixture.Resource]{typed})),
			),
			operator.PreviousFull,
			[]string{"Sync 1", "Update 1>2", "Sync 2", "Delete 3"},
		},
		"no previous state": {typed, operator.PreviousNone, []string{"Add 1", "Update 2>2", "Add 2", "Delete 3"}},
		"no previous, Sync": {
			syncer[*fixture.Resource]{typed}, operator.PreviousNone, []string{"Sync 1", "Update 2>2", "Sync 2", "Delete 3"},
		},
		"only metadata known": {typed, operator.PreviousMetadata, []string{"Add 1", "Update 1>2", "Update 2>2", "Delete 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			lines = nil
			b := newBench(t)
			r := operator.WatcherReconciler(tc.watcher)
			r.PreviousState, r.Resync, r.Finalizers = tc.full, true, []string{testFinalizer}
			r.Handled = func(*fixture.Resource) bool { return true }
			b.WithEdge = r
			b.BelowController()
			b.handle(version("a", 1, 1))
			b.handle(version("a", 2, 2))
			b.resyncs(version("a", 2, 2))
			b.handle(version("a", 2, 2))
			b.handle(version("a", 3, 3, deleting, with(testFinalizer)))
			if diff := cmp.Diff(tc.want, lines); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWidenWatcher_AnotherType(t *testing.T) {
	ctx, wide, other := t.Context(),
		operator.WidenWatcher(operator.TypedWatcher[*fixture.Resource](watcher[*fixture.Resource]{})), &corev1.ConfigMap{}
	const want = "cannot handle an object of type *v1.ConfigMap, only of type *fixture.Resource"
	wantText(t, want, wide.Add(ctx, other))
	wantText(t, want, wide.Update(ctx, other, version("a", 1, 1)))
	wantText(t, want, wide.Update(ctx, version("a", 1, 1), other))
	wantText(t, want, wide.Delete(ctx, other))
}

// The previous state has only the selected parts, even after the cache has received the resource.
func TestWithEdge_PreviousState(t *testing.T) {
	for name, tc := range map[string]struct {
		state operator.PreviousState
		want  *fixture.Resource
	}{
		"full": {operator.PreviousFull, version("a", 1, 1, labeled("old"), with("example.com/other"))},
		"metadata": {
			operator.PreviousMetadata,
			version("a", 1, 1, labeled("old"), with("example.com/other"), func(r *fixture.Resource) { r.Spec.Fields = nil }),
		},
		"none": {operator.PreviousNone, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var previous *fixture.Resource
			b.WithEdge = operator.AsSubReconciler[*fixture.Resource](&operator.TypedReconciler[*fixture.Resource]{
				ReconcileFunc: func(
					ctx context.Context, _ operator.TypedReconcileRequest[*fixture.Resource],
				) (operator.ReconcileResult, error) {
					previous, _ = operator.PreviousFrom[*fixture.Resource](ctx)
					return operator.ReconcileResult{}, nil
				},
			})
			b.PreviousState = tc.state
			first := version("a", 1, 1, labeled("old"), with("example.com/other"))
			b.handle(first)
			b.appears(first.DeepCopy())
			b.handle(version("a", 2, 2))
			equal(t, "previous state", tc.want, previous)
		})
	}
}

func TestHandlers_Validate(t *testing.T) {
	recursive := validation.WithRecursive(t.Context())
	for name, tc := range map[string]struct {
		handler validation.Validator
		want    string
	}{
		"a watcher": {operator.WatcherReconciler(watcher[*fixture.Resource]{}), ""},
		"no watcher": {
			operator.WatcherReconciler[*fixture.Resource](nil),
			`WithEdge "Watcher" must have a valid Reconciler: the handler must not be nil`,
		},
		"no reconciler": {
			operator.AsSubReconciler[*fixture.Resource](nil),
			`WithEdge "Reconciler" must have a valid Reconciler: the handler must not be nil`,
		},
		"no tree": {
			operator.AsSubReconciler[*fixture.Resource](operator.AsReconciler[*fixture.Resource](nil)),
			`WithEdge "Reconciler" must define Reconciler`,
		},
		"nothing at all": {
			&operator.WithEdge[*fixture.Resource]{Finalizers: []string{""}},
			"WithEdge \"WithEdge\" must define Reconciler\nWithEdge \"WithEdge\" must not have an empty name in Finalizers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, tc.want, tc.handler.Validate(recursive))
		})
	}
}

// Outside of a WithEdge, the functions return zero values.
func TestEdgeFrom_Elsewhere(t *testing.T) {
	ctx := t.Context()
	equal(t, "edge", operator.Edge{}, operator.EdgeFrom(ctx))
	if previous, ok := operator.PreviousFrom[*corev1.ConfigMap](ctx); ok || previous != nil {
		t.Errorf("previous state: %v, %t", previous, ok)
	}
	if state := operator.RetryState(ctx); state != nil {
		t.Errorf("state: %v", state)
	}
}

func TestRetryState_InATree(t *testing.T) {
	b := newBench(t)
	var remembered []int
	fail := true
	b.WithEdge = &operator.WithEdge[*fixture.Resource]{Reconciler: reconcilers.Sequence[*fixture.Resource]{
		&reconcilers.SyncReconciler[*fixture.Resource]{SyncDuringFinalization: true, Sync: func(
			ctx context.Context, _ *fixture.Resource,
		) error {
			state := operator.RetryState(ctx)
			calls, _ := state["calls"].(int)
			remembered = append(remembered, calls)
			state["calls"] = calls + 1
			return nil
		}},
		&reconcilers.SyncReconciler[*fixture.Resource]{SyncDuringFinalization: true, Sync: func(
			ctx context.Context, _ *fixture.Resource,
		) error {
			operator.RetryState(ctx)["seen"] = true // the same map
			if fail {
				return errTest
			}
			return nil
		}},
	}}
	for _, obj := range []*fixture.Resource{
		version("a", 1, 1), version("a", 1, 1), version("a", 2, 2), version("b", 2, 3),
	} {
		_, _ = b.see(obj)
	}
	fail = false
	_, _ = b.see(version("b", 2, 3))
	_, _ = b.see(version("b", 2, 3))
	want := []int{
		0, 1, // kept when it fails
		0,    // not for another generation
		1, 2, // for the deletion of what was replaced, which fails and succeeds
		0, 0, // not for another resource, nor after a success
	}
	equal(t, "calls that are remembered", want, remembered)
}

// A nil pointer behind an interface is not a valid handler.
func TestHandlers_NilPointers(t *testing.T) {
	for name, handler := range map[string]interface{ Validate(context.Context) error }{
		"watcher":         operator.WatcherReconciler[*fixture.Resource]((*nilWatcher)(nil)),
		"widened watcher": operator.WatcherReconciler(operator.WidenWatcher[*fixture.Resource]((*nilWatcher)(nil))),
		"reconciler":      operator.AsSubReconciler[*fixture.Resource]((*operator.TypedReconciler[*fixture.Resource])(nil)),
	} {
		t.Run(name, func(t *testing.T) {
			err := handler.Validate(validation.WithRecursive(t.Context()))
			if err == nil || !strings.Contains(err.Error(), "the handler must not be nil") {
				t.Errorf("Validate = %v", err)
			}
		})
	}
}

type nilWatcher struct {
	operator.TypedWatcher[*fixture.Resource]
}
