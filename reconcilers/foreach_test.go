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

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

type cursor = reconcilers.Cursor[string]

// visit returns a loop that records each cursor and then runs rest.
func visit[I any](where string, list []I, rest ...subReconciler) *reconcilers.ForEach[*fixture.Resource, I] {
	return &reconcilers.ForEach[*fixture.Resource, I]{
		Items: items(list...), Reconciler: append(sequence{look[I](where)}, rest...),
	}
}

func look[I any](where string) *syncReconciler {
	return &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
		at := reconcilers.CursorStasher[I]().RetrieveOrDie(ctx)
		note(ctx, r, "%s %v %d/%d", where, at.Item, at.Index, at.Length)
		return nil
	}}
}

func TestForEach(t *testing.T) {
	type result = reconcilers.Result
	// of returns a loop over three items. One of them fails.
	of := func(failsAt string, err error) *forEach {
		return visit("at", []string{"a", "b", "c"}, &syncReconciler{SyncWithResult: func(
			ctx context.Context, _ *fixture.Resource,
		) (result, error) {
			at := reconcilers.CursorStasher[string]().RetrieveOrDie(ctx)
			if at.Item == failsAt {
				return result{RequeueAfter: time.Second}, err
			}
			return result{RequeueAfter: time.Minute * time.Duration(1+at.Index), Priority: new(at.Index)}, nil
		}})
	}
	none, halt := result{}, reconcilers.ErrHaltSubReconcilers
	noItems := func(context.Context, *fixture.Resource) ([]string, error) { return []string{"a"}, errTest }
	// withCursor returns the case with a check of the cursor after the loop. nil means no cursor.
	withCursor := func(last any, tc subReconcilerCase) subReconcilerCase {
		tc.ExpectStashedValues = map[reconcilers.StashKey]any{reconcilers.CursorStasher[string]().Key(): last}
		return tc
	}
	subReconcilerTests{
		// Items are visited in order, and their results are combined.
		"all": withCursor(cursor{Index: 2, Length: 3, Item: "c"}, outcome(
			of("", nil), result{RequeueAfter: time.Minute, Priority: new(2)}, nil, "at a 0/3", "at b 1/3", "at c 2/3",
		)),
		// An empty list is valid. If Items fails, no item is visited.
		"none":     withCursor(nil, outcome(visit[string]("at", nil), none, nil)),
		"no items": withCursor(nil, outcome(&forEach{Items: noItems, Reconciler: never(t)}, none, errTest)),
		// An error or a halt ends the loop. The result combines the previous items, and the time of the halt.
		"fails": withCursor(cursor{Index: 1, Length: 3, Item: "b"}, outcome(
			of("b", errTest), result{RequeueAfter: time.Minute, Priority: new(0)}, errTest, "at a 0/3", "at b 1/3",
		)),
		"halts": withCursor(cursor{Index: 2, Length: 3, Item: "c"}, outcome(
			of("c", halt), result{RequeueAfter: time.Second, Priority: new(1)}, halt, "at a 0/3", "at b 1/3", "at c 2/3",
		)),
		// The first item fails, so the result is empty.
		"fails at once": withCursor(
			cursor{Index: 0, Length: 3, Item: "a"}, outcome(of("a", errTest), none, errTest, "at a 0/3"),
		),
		"one after the other": withCursor(cursor{Index: 0, Length: 1, Item: "c"}, outcome(
			sequence{
				visit("first", []string{"a", "b"}), visit("second", []string{"c"}),
			}, none, nil, "first a 0/2", "first b 1/2", "second c 0/1",
		)),
	}.Run(t, scheme, fromCase)
}

func TestForEach_Nested(t *testing.T) {
	none, after := reconcilers.Result{}, look[string]("after")
	failing := &tryCatch{
		Try: &forEach{Items: items("x", "y"), Reconciler: returning(none, errTest)},
		Catch: func(context.Context, *fixture.Resource, reconcilers.Result, error) (reconcilers.Result, error) {
			return none, nil
		},
	}
	core, events := corev1.EventSeries{Count: 1}, eventsv1.EventSeries{Count: 2}
	subReconcilerTests{
		"of the same type": outcome(
			visit("outer", []string{"a", "b"}, visit("inner", []string{"1", "2", "3"}), after, failing, after), none, nil,
			"outer a 0/2", "inner 1 0/3", "inner 2 1/3", "inner 3 2/3", "after a 0/2", "after a 0/2",
			"outer b 1/2", "inner 1 0/3", "inner 2 1/3", "inner 3 2/3", "after b 1/2", "after b 1/2",
		),
		"of interfaces": outcome(
			visit("any", []any{"text", 2, nil}, visit("stringer", []fmt.Stringer{time.Minute})), none, nil,
			"any text 0/3", "stringer 1m0s 0/1", "any 2 1/3", "stringer 1m0s 0/1", "any <nil> 2/3", "stringer 1m0s 0/1",
		),
		"of types that have the same name": outcome(
			visit(
				"core", []corev1.EventSeries{core},
				visit("events", []eventsv1.EventSeries{events}, look[corev1.EventSeries]("core")),
			), none, nil,
			fmt.Sprintf("core %v 0/1", core), fmt.Sprintf("events %v 0/1", events), fmt.Sprintf("core %v 0/1", core),
		),
	}.Run(t, scheme, fromCase)
}

func TestCursorStasher_KeysAreUnique(t *testing.T) {
	type local struct{}
	keys := map[reconcilers.StashKey]string{}
	add := func(what string, key reconcilers.StashKey) {
		if other, ok := keys[key]; ok {
			t.Errorf("%s and %s share the key %s", what, other, key)
		}
		keys[key] = what
	}
	// Both types are named v1.Event, in different packages.
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
}
