// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// When does a request run again whose item fails? An error that has its own time keeps it, as below a Sequence.
func TestForEach_WhenDoesAnItemThatFailsRunAgain(t *testing.T) {
	ctx := calledby.Controller()
	hour, failing := reconcilers.Result{RequeueAfter: time.Hour}, returning(reconcilers.Result{}, errTest)
	limited := &rateLimit{PerResource: true, Interval: time.Hour, Reconciler: nothing()}
	for name, tc := range map[string]struct {
		item subReconciler
		want time.Duration
		err  error
	}{
		"RateLimit":                      {limited, time.Hour, nil},
		"Retry":                          {&retry{InitialDelay: time.Hour, Reconciler: failing}, time.Hour, nil},
		"ErrRetryAfter":                  {returning(hour, reconcilers.ErrRetryAfter), time.Hour, nil},
		"a halt with a RequeueAfter":     {returning(hour, reconcilers.ErrHaltSubReconcilers), time.Hour, nil},
		"a failure has the back-off":     {returning(hour, errTest), 0, errTest},
		"a halt with none, back-off too": {returning(reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers), 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, newResource(settled, specField("value", "1")))
				root := &resourceReconciler{Config: w.Config, Reconciler: &forEach{Items: items("a"), Reconciler: tc.item}}
				if name == "RateLimit" { // it defers the second run
					_, err := root.Reconcile(ctx, testRequest)
					wantErr(t, nil, err)
				}
				result, err := root.Reconcile(ctx, testRequest)
				wantErr(t, tc.err, err)
				equal(t, "requeue", tc.want, result.RequeueAfter)
			})
		})
	}
}

// perItem records the items that run, and fails for one of them.
type perItem struct {
	ran   []string
	fails string
}

func (p *perItem) reconciler() *syncReconciler {
	return &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
		item := reconcilers.CursorStasher[string]().RetrieveOrDie(ctx).Item
		p.ran = append(p.ran, item)
		if item == p.fails {
			return errTest
		}
		return nil
	}}
}

// Which items run if one of them fails or was deferred? Each has a state of its own, wherever it is in the list.
func TestForEach_WhichItemsRun(t *testing.T) {
	for name, tc := range map[string]struct {
		fails string
		below func(inner subReconciler) subReconciler
		// lists are the items of the requests, which are a second apart, and want are the items that run.
		lists, want []string
	}{
		"Retry": {
			"a", func(r subReconciler) subReconciler {
				return &retry{InitialDelay: time.Hour, Continue: true, Reconciler: r}
			},
			[]string{"a b c", "a b c", "c b a"},
			[]string{"a b c", "b c", "c b"},
		},
		"RateLimit": {
			"", func(r subReconciler) subReconciler {
				return &rateLimit{PerResource: true, Interval: time.Hour, Continue: true, Reconciler: r}
			},
			[]string{"a b", "a b", "c a b"},
			[]string{"a b", "", "c"},
		},
		"RateLimit of all resources": {
			"", func(r subReconciler) subReconciler {
				return &rateLimit{Runs: 2, Interval: time.Second, Continue: true, Reconciler: r}
			},
			[]string{"a b c", "a b c"},
			[]string{"a b", "a c"}, // c has reserved its time
		},
		"Periodic": {
			"", func(r subReconciler) subReconciler { return &periodic{Interval: time.Hour, Reconciler: r} },
			[]string{"a b", "a b", "c a b"},
			[]string{"a b", "", "c"},
		},
		"items of one value": {
			"", func(r subReconciler) subReconciler { return &periodic{Interval: time.Hour, Reconciler: r} },
			[]string{"a a", "a a", "a a a"},
			[]string{"a a", "", "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner, list := &perItem{fails: tc.fails}, ""
				r := &forEach{
					Reconciler: tc.below(inner.reconciler()),
					Items: func(context.Context, *fixture.Resource) ([]string, error) {
						return strings.Fields(list), nil
					},
				}
				for i, want := range tc.want {
					list, inner.ran = tc.lists[i], nil
					_, err := r.Reconcile(newWorld(t).Context(), newResource())
					wantErr(t, nil, err)
					equal(t, "items that run of "+list, strings.Fields(want), inner.ran)
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// Is an error reported that always occurs for one item? A success of another item does not reset its count.
func TestForEach_IsAnErrorOfOneItemReported(t *testing.T) {
	inner := &perItem{fails: "b"}
	r := &forEach{Items: items("a", "b"), Reconciler: &suppress{Threshold: 3, Reconciler: inner.reconciler()}}
	got := []bool{}
	for range 3 {
		_, err := r.Reconcile(newWorld(t).Context(), newResource())
		wantErr(t, errTest, err)
		got = append(got, !errors.Is(err, reconcilers.ErrQuiet))
	}
	equal(t, "errors that are reported", []bool{false, false, true}, got)
}

// Does a back-off grow if a later iteration fails? The success of the first iteration does not reset it.
func TestWhile_DoesTheBackOffOfAnIterationGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &while{
			Condition: func(ctx context.Context, _ *fixture.Resource) bool { return reconcilers.RetrieveIteration(ctx) < 2 },
			Reconciler: &retry{Reconciler: &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
				if reconcilers.RetrieveIteration(ctx) == 1 {
					return errTest
				}
				return nil
			}}},
		}
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			result, err := r.Reconcile(newWorld(t).Context(), newResource())
			wantErr(t, errTest, err)
			equal(t, "requeue", want, result.RequeueAfter)
			time.Sleep(want)
		}
	})
}

// Is an item the same item after its object has changed? Objects are recognized by their identity, others by value.
func TestForEach_WhichItemsAreTheSame(t *testing.T) {
	type options struct{ Size *int }
	synctest.Test(t, func(t *testing.T) {
		changed := newConfigMap("a", func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"changed": "x"} })
		equal(t, "object", 1, runsOf(t, newConfigMap("a"), changed))
		equal(t, "object that was made again", 2, runsOf(t, newConfigMap("a"), newConfigMap("a", func(cm *corev1.ConfigMap) {
			cm.UID = "other"
		})))
		equal(t, "object in a slice of structs", 1, runsOf(t, *newConfigMap("a"), *changed))
		equal(t, "same value", 1, runsOf(t, options{new(1)}, options{new(1)}))
		equal(t, "other value", 2, runsOf(t, options{new(1)}, options{new(2)}))
		equal(t, "what has no encoding, by its position", 1, runsOf(t, func() {}, func() {}))
	})
}

// runsOf returns how often a Periodic runs in two requests with one item each.
func runsOf[I any](t *testing.T, first, second I) int {
	inner, lists := newCalls(), []I{first, second}
	r := &reconcilers.ForEach[*fixture.Resource, I]{
		Reconciler: &periodic{Interval: time.Hour, Reconciler: inner},
		Items: func(context.Context, *fixture.Resource) ([]I, error) {
			next := lists[:1]
			lists = slices.Clone(lists[1:])
			return next, nil
		},
	}
	for range 2 {
		_, err := r.Reconcile(newWorld(t).Context(), newResource())
		wantErr(t, nil, err)
	}
	return inner.count
}
