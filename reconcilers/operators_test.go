// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/observe"
)

// observed returns the reconciler of a controller of the world, and the last event of its last run.
func observed(t *testing.T, w *world, r *resourceReconciler) (ctrlreconcile.Reconciler, *observe.ReconcileFinished) {
	t.Helper()
	mgr := newManager(t, w, newEventCache(w.Scheme))
	finished := &observe.ReconcileFinished{}
	observe.Of(mgr).Add(observe.Func(func(_ context.Context, event observe.Event) {
		if e, ok := event.(*observe.ReconcileFinished); ok {
			*finished = *e
		}
	}))
	bldr := ctrl.NewControllerManagedBy(mgr).For(&fixture.Resource{})
	built, err := observe.Controller(bldr).Build(ctrlreconcile.Func(r.ReconcileManaged))
	if err != nil {
		t.Fatal(err)
	}
	return built, finished
}

func TestWhichStepPanicked(t *testing.T) {
	w := newWorld(t, newResource())
	r := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{
		Name: "Careless", Sync: func(context.Context, *fixture.Resource) error { panic(errTest) },
	}}
	built, finished := observed(t, w, r)
	where := errTest.Error() + " (in reconcilers_test.TestWhichStepPanicked.func1, operators_test.go:"
	if _, err := built.Reconcile(t.Context(), testRequest); err == nil || !finished.Panicked ||
		!strings.HasPrefix(finished.Panic, where) {
		t.Errorf("got error %v, panicked %v with %q", err, finished.Panicked, finished.Panic)
	}
	equal(t, "events", []string{
		"Warning ReconcileFailed: ResourceResourceReconciler.Careless: the step panicked, see the log of the controller " +
			"for the stack",
	}, recordedEvents(w))
}

func TestWhichStepIsStuck(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		want  []string
	}{
		"slow": {takes: observe.StuckAfter - time.Second},
		"stuck": {
			takes: 3 * observe.StuckAfter,
			want: []string{
				"Warning ReconcileStuck: ResourceResourceReconciler.Slow: has not ended for more than a minute; the object is " +
					"not reconciled meanwhile",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource())
			built, _ := observed(t, w, &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{
				Name: "Slow", Sync: func(context.Context, *fixture.Resource) error {
					time.Sleep(tc.takes)
					return nil
				},
			}})
			synctest.Test(t, func(t *testing.T) {
				if _, err := built.Reconcile(t.Context(), testRequest); err != nil {
					t.Error(err)
				}
			})
			equal(t, "events", tc.want, recordedEvents(w))
		})
	}
}
