// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

type cursor = reconcilers.Cursor[string]

func TestForEach(t *testing.T) {
	type result = reconcilers.Result
	all := []cursor{{Index: 0, Length: 3, Item: "a"}, {Index: 1, Length: 3, Item: "b"}, {Index: 2, Length: 3, Item: "c"}}
	for name, tc := range map[string]struct {
		reason  string
		items   func(context.Context, *fixture.Resource) ([]string, error)
		failsAt string
		err     error
		want    result
		cursors []cursor
	}{
		"all": {
			reason: "each item in order, and the results of all",
			items:  items("a", "b", "c"), cursors: all, want: result{RequeueAfter: time.Minute, Priority: new(2)},
		},
		"none": {reason: "an empty list is nothing to do", items: items[string]()},
		"no items": {
			reason: "without a list there is nothing to loop over",
			items:  func(context.Context, *fixture.Resource) ([]string, error) { return []string{"a"}, errTest },
			err:    errTest,
		},
		"fails": {
			reason: "an error ends the loop, the result is that of the items before",
			items:  items("a", "b", "c"), failsAt: "b", err: errTest, cursors: all[:2], want: result{RequeueAfter: time.Minute, Priority: new(0)},
		},
		"fails at once": {
			reason: "there is no result of items before the first one",
			items:  items("a", "b", "c"), failsAt: "a", err: errTest, cursors: all[:1],
		},
		"halts": {
			reason: "a halt ends the loop, too",
			items:  items("a", "b", "c"), failsAt: "c", err: reconcilers.ErrHaltSubReconcilers, cursors: all,
			want: result{RequeueAfter: time.Minute, Priority: new(1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := reconcilers.WithStash(context.Background())
			stasher := reconcilers.CursorStasher[string]()
			cursors := []cursor{}
			r := &forEach{Items: tc.items, Reconciler: &syncReconciler{SyncWithResult: func(ctx context.Context, _ *fixture.Resource) (result, error) {
				at := stasher.RetrieveOrDie(ctx)
				cursors = append(cursors, at)
				if at.Item == tc.failsAt {
					return result{RequeueAfter: time.Second}, tc.err
				}
				return result{RequeueAfter: time.Minute * time.Duration(1+at.Index), Priority: new(at.Index)}, nil
			}}}
			got, err := r.Reconcile(ctx, newResource())
			wantErr(t, tc.err, err)
			equal(t, "result, for "+tc.reason, tc.want, got)
			equal(t, "cursors, for "+tc.reason, tc.cursors, cursors)
			equal(t, "cursor left behind", len(tc.cursors) > 0, stasher.Has(ctx))
			if len(tc.cursors) > 0 {
				equal(t, "last cursor", tc.cursors[len(tc.cursors)-1], stasher.RetrieveOrDie(ctx))
			}
		})
	}
}

func TestForEach_LoopsInARow(t *testing.T) {
	ctx := reconcilers.WithStash(context.Background())
	r := sequence{
		&forEach{Items: items("a", "b"), Reconciler: nothing()},
		&forEach{Items: items("c"), Reconciler: nothing()},
	}
	_, err := r.Reconcile(ctx, newResource())
	wantErr(t, nil, err)
	equal(t, "cursor left behind", cursor{Index: 0, Length: 1, Item: "c"}, reconcilers.CursorStasher[string]().RetrieveOrDie(ctx))
}

// visit returns a loop that passes each cursor to see, and then runs the rest.
func visit[I any](list []I, see func(reconcilers.Cursor[I]), rest ...subReconciler) *reconcilers.ForEach[*fixture.Resource, I] {
	look := &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
		see(reconcilers.CursorStasher[I]().RetrieveOrDie(ctx))
		return nil
	}}
	return &reconcilers.ForEach[*fixture.Resource, I]{Items: items(list...), Reconciler: append(sequence{look}, rest...)}
}

func TestDefect09_ForEachOverTheSameTypeWithin(t *testing.T) {
	var seen []string
	see := func(where string) func(cursor) {
		return func(c cursor) { seen = append(seen, fmt.Sprintf("%s %s %d/%d", where, c.Item, c.Index, c.Length)) }
	}
	again := &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
		see("after")(reconcilers.CursorStasher[string]().RetrieveOrDie(ctx))
		return nil
	}}
	failing := &tryCatch{
		Try: &forEach{Items: items("x", "y"), Reconciler: returning(reconcilers.Result{}, errTest)},
		Catch: func(context.Context, *fixture.Resource, reconcilers.Result, error) (reconcilers.Result, error) {
			return reconcilers.Result{}, nil
		},
	}
	r := visit([]string{"a", "b"}, see("outer"), visit([]string{"1", "2", "3"}, see("inner")), again, failing, again)
	_, err := r.Reconcile(reconcilers.WithStash(context.Background()), newResource())
	wantErr(t, nil, err)
	equal(t, "cursors", []string{
		"outer a 0/2", "inner 1 0/3", "inner 2 1/3", "inner 3 2/3", "after a 0/2", "after a 0/2",
		"outer b 1/2", "inner 1 0/3", "inner 2 1/3", "inner 3 2/3", "after b 1/2", "after b 1/2",
	}, seen)
}

func TestDefect09_ForEachOverInterfaces(t *testing.T) {
	var anything []any
	var objects []client.Object
	r := sequence{
		visit([]any{"text", 2, nil}, func(c reconcilers.Cursor[any]) { anything = append(anything, c.Item) },
			visit([]client.Object{newResource()}, func(c reconcilers.Cursor[client.Object]) { objects = append(objects, c.Item) })),
	}
	_, err := r.Reconcile(reconcilers.WithStash(context.Background()), newResource())
	wantErr(t, nil, err)
	equal(t, "items", []any{"text", 2, nil}, anything)
	equal(t, "objects", 3, len(objects))
}

func TestDefect09_ForEachKeepsTypesApart(t *testing.T) {
	type local struct{}
	keys := map[reconcilers.StashKey]string{}
	add := func(what string, key reconcilers.StashKey) {
		if other, ok := keys[key]; ok {
			t.Errorf("%s and %s share the key %s", what, other, key)
		}
		keys[key] = what
	}
	// Both are v1.Event, each in a package of its own.
	add("core event", reconcilers.CursorStasher[corev1.Event]().Key())
	add("event", reconcilers.CursorStasher[eventsv1.Event]().Key())
	add("pointer to core event", reconcilers.CursorStasher[*corev1.Event]().Key())
	add("pointer to event", reconcilers.CursorStasher[*eventsv1.Event]().Key())
	add("core events", reconcilers.CursorStasher[[]corev1.Event]().Key())
	add("events", reconcilers.CursorStasher[[]eventsv1.Event]().Key())
	add("two core events", reconcilers.CursorStasher[[2]corev1.Event]().Key())
	add("two events", reconcilers.CursorStasher[[2]eventsv1.Event]().Key())
	add("three events", reconcilers.CursorStasher[[3]eventsv1.Event]().Key())
	add("core events by name", reconcilers.CursorStasher[map[string]corev1.Event]().Key())
	add("events by name", reconcilers.CursorStasher[map[string]eventsv1.Event]().Key())
	add("names by event", reconcilers.CursorStasher[map[*eventsv1.Event]string]().Key())
	add("deployment", reconcilers.CursorStasher[appsv1.Deployment]().Key())
	add("string", reconcilers.CursorStasher[string]().Key())
	add("named string", reconcilers.CursorStasher[corev1.PodPhase]().Key())
	add("any", reconcilers.CursorStasher[any]().Key())
	add("error", reconcilers.CursorStasher[error]().Key())
	add("object", reconcilers.CursorStasher[client.Object]().Key())
	add("local", reconcilers.CursorStasher[local]().Key())
	add("function", reconcilers.CursorStasher[func() string]().Key())

	// Not only the keys, the items.
	seen := []string{}
	r := visit([]corev1.Event{{Reason: "core"}}, func(reconcilers.Cursor[corev1.Event]) {},
		visit([]eventsv1.Event{{Reason: "events"}}, func(c reconcilers.Cursor[eventsv1.Event]) { seen = append(seen, c.Item.Reason) },
			&syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
				seen = append(seen, reconcilers.CursorStasher[corev1.Event]().RetrieveOrDie(ctx).Item.Reason)
				return nil
			}}))
	_, err := r.Reconcile(reconcilers.WithStash(context.Background()), newResource())
	wantErr(t, nil, err)
	equal(t, "items", []string{"events", "core"}, seen)
}
