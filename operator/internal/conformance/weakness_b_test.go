// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
)

func (l *lab) conditionOf(name string) string {
	l.Helper()
	r := newResource(name, "")
	l.must(l.Get(context.Background(), client.ObjectKeyFromObject(r), r))
	condition := meta.FindStatusCondition(r.Status.Conditions, operator.ConditionRetriesExhausted)
	if condition == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s", condition.Status, condition.Reason, condition.Message)
}

func TestWeaknessB1_GivingUpIsVisible(t *testing.T) {
	inLab(t, func(l *lab) {
		hooked := &notes{}
		n := &notebook[*fixture.Resource]{answer: func(string, *fixture.Resource) error { return errTest }}
		o := operator.OpinionatedWatcher(finalizer, n)
		o.Handler.Name = fmt.Sprintf("b1-%p", hooked) // metrics outlive the test
		o.Handler.RetryPolicy = operator.ExponentialBackoffRetryPolicy(5*time.Second, 5)
		o.Handler.OnExhausted = func(_ context.Context, r *fixture.Resource, err error) {
			hooked.add(r.Name, ": ", err)
		}
		beside := &notebook[*fixture.Resource]{}
		l.start(controller(o, plain(beside)))
		l.must(l.Create(l.Context(), newResource("a", "1")))
		l.pass(314 * time.Second)
		if exhausted := l.eventsOf("RetriesExhausted"); exhausted != 0 || l.eventsOf("HandlerFailed") != 6 {
			t.Errorf("events within 314 seconds: %v", l.events)
		}
		l.pass(8 * time.Hour)
		n.wantLines(t, slices.Repeat([]string{"Add a 1"}, 7)...)
		expect := func(what string, want, got any) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		expect("events", 1, l.eventsOf("RetriesExhausted"))
		hooked.wantLines(t, "a: "+errTest.Error())
		expect("condition", "True CreatedFailed "+errTest.Error(), l.conditionOf("a"))
		expect(
			"exhausted, in metrics", 1.0,
			apitest.Counted(t, "trueup_handler_retries_exhausted_total", map[string]string{"handler": o.Handler.Name}),
		)
		expect(
			"failures, in metrics", 6.0,
			apitest.Counted(t, "trueup_handler_calls_total", map[string]string{"handler": o.Handler.Name, "result": "failed"}),
		)
		expect(
			"last call, in metrics", 1.0,
			apitest.Counted(t, "trueup_handler_calls_total", map[string]string{
				"handler": o.Handler.Name, "result": "exhausted",
			}),
		)

		// Neither irrelevant changes nor the success of another handler clear the condition.
		changeIn(l, newResource("a", ""), func(r *fixture.Resource) { r.Labels = map[string]string{"some": "noise"} })
		l.pass(time.Hour)
		n.wantLines(t)
		expect("condition after noise", "True CreatedFailed "+errTest.Error(), l.conditionOf("a"))

		n.answers(nil)
		changeIn(l, newResource("a", ""), setValue("2"))
		l.pass(time.Second)
		n.wantLines(t, "Add a 2")
		expect("condition after a success", "", l.conditionOf("a"))
	})
}

// A resync of the cache also leads to another attempt.
func TestWeaknessB1_ResyncTriesAgain(t *testing.T) {
	inLab(t, func(l *lab) {
		n := &notebook[*fixture.Resource]{answer: failsOn("Add a 1")}
		l.changed = func(o *ctrl.Options) { o.Cache.SyncPeriod = new(time.Hour) }
		l.start(controller(opinionated(n, func(r *operator.WithEdge[*fixture.Resource]) {
			r.RetryPolicy = func(error, int) (bool, time.Duration) { return false, 0 }
		})))
		l.must(l.Create(l.Context(), newResource("a", "1")))
		l.pass(10 * time.Minute)
		n.wantLines(t, "Add a 1")
		l.pass(10 * time.Hour)
		n.wantLines(t, "Add a 1") // with success, and then no more
	})
}

// An object whose deletion cannot be handled keeps its finalizer until it changes, even after the handler has given
// up.
func TestWeaknessB1_GivingUpOnADeletionKeepsTheObject(t *testing.T) {
	inLab(t, func(l *lab) {
		n := &notebook[*fixture.Resource]{answer: failsOn("Delete a 1", "Delete a 1")}
		l.start(controller(opinionated(n, func(r *operator.WithEdge[*fixture.Resource]) {
			r.RetryPolicy = operator.ExponentialBackoffRetryPolicy(time.Second, 0)
		})))
		l.must(l.Create(l.Context(), newResource("a", "1")))
		l.pass(time.Second)
		l.must(l.Delete(l.Context(), newResource("a", "1")))
		l.pass(time.Hour)
		n.wantLines(t, "Add a 1", "Delete a 1", "Delete a 1")
		for i := range 3 {
			changeIn(l, newResource("a", ""), func(r *fixture.Resource) {
				r.Labels = map[string]string{"some": fmt.Sprint("noise ", i)}
			})
			l.pass(time.Hour)
		}
		n.wantLines(t)
		changeIn(l, newResource("a", ""), setValue("2"))
		l.pass(time.Hour)
		n.wantLines(t, "Delete a 2")
		if err := l.Get(
			l.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, newResource("a", ""),
		); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("the object still exists after its deletion was handled: %v", err)
		}
	})
}

// The watch was down, so the cache receives the changes of the spec and of the finalizer as one event.
func TestWeaknessB4_ChangeTogetherWithTheFinalizerIsHandled(t *testing.T) {
	inLab(t, func(l *lab) {
		n := &notebook[*fixture.Resource]{}
		l.onPatch(l.link.disconnect)
		l.start(controller(opinionated(n)))
		l.must(l.Create(l.Context(), newResource("a", "1")))
		l.pass(time.Second)
		changeIn(l, newResource("a", ""), setValue("2"))
		l.onPatch(nil)
		l.reconnect()
		l.pass(time.Minute)
		n.wantLines(t, "Add a 1", "Update a 1>2")
	})
}

func TestWeaknessB5_FinalizerIsCorrectAfterARelist(t *testing.T) {
	inLab(t, func(l *lab) {
		n := &notebook[*fixture.Resource]{}
		o := operator.OpinionatedWatcher(finalizer, n)
		o.InProgressFinalizer = finalizer + "-wip"
		l.start(controller[*fixture.Resource](o))
		l.must(l.Create(l.Context(), newResource("a", "1")))
		l.pass(time.Second)
		l.link.disconnect()
		changeIn(l, newResource("a", ""), func(r *fixture.Resource) {
			r.Finalizers = nil
			setValue("2")(r)
		})
		l.reconnect()
		l.pass(time.Minute)
		n.wantLines(t, "Add a 1", "Update a 1>2")
		r := newResource("a", "")
		l.must(l.Get(l.Context(), client.ObjectKeyFromObject(r), r))
		if diff := cmp.Diff([]string{finalizer}, r.Finalizers); diff != "" {
			t.Errorf("finalizers (-want +got):\n%s", diff)
		}
	})
}

// While the watch was down, another object of the same name replaced an object.
func TestWeaknessB4_ReplacementInOneEventIsHandledAsTwo(t *testing.T) {
	for style, make := range styles {
		t.Run(style, func(t *testing.T) {
			inLab(t, func(l *lab) {
				n := &notebook[*fixture.Resource]{}
				l.start(controller(make(n)))
				l.must(l.Create(l.Context(), newResource("a", "1")))
				l.pass(time.Second)
				l.link.disconnect()
				changeIn(l, newResource("a", ""), func(r *fixture.Resource) {
					controllerutil.RemoveFinalizer(r, finalizer)
					setValue("2")(r)
				})
				l.must(l.Delete(l.Context(), newResource("a", "")))
				l.must(l.Create(l.Context(), newResource("a", "3")))
				l.reconnect()
				l.pass(time.Minute)
				n.wantLines(t, "Add a 1", "Delete a 1", "Add a 3")
			})
		})
	}
}

func TestWeaknessB10_StateLastsForAllRetries(t *testing.T) {
	inLab(t, func(l *lab) {
		progress := &notes{}
		reconciler := &operator.TypedReconciler[*fixture.Resource]{
			ReconcileFunc: func(
				_ context.Context, req operator.TypedReconcileRequest[*fixture.Resource],
			) (operator.ReconcileResult, error) {
				done, _ := req.State["done"].(int)
				progress.add(req.Action, " ", valueOf(req.Object), " after ", done, " steps")
				if done == 4 {
					return operator.ReconcileResult{}, nil
				}
				// Each attempt returns a new state.
				return operator.ReconcileResult{State: map[string]any{"done": done + 1}}, errTest
			},
		}
		o := operator.NewOpinionated[*fixture.Resource](finalizer, reconciler)
		o.Handler.RetryPolicy = operator.ExponentialBackoffRetryPolicy(time.Second, 10)
		l.start(controller[*fixture.Resource](o))
		l.must(l.Create(l.Context(), newResource("a", "1")))
		l.pass(time.Hour)
		changeIn(l, newResource("a", ""), setValue("2"))
		l.pass(2 * time.Second)
		changeIn(l, newResource("a", ""), setValue("3")) // a new generation drops the state
		l.pass(time.Hour)
		progress.wantLines(t,
			"Created 1 after 0 steps", "Created 1 after 1 steps", "Created 1 after 2 steps", "Created 1 after 3 steps",
			"Created 1 after 4 steps",
			"Updated 2 after 0 steps", "Updated 2 after 1 steps",
			"Updated 3 after 0 steps", "Updated 3 after 1 steps", "Updated 3 after 2 steps", "Updated 3 after 3 steps",
			"Updated 3 after 4 steps",
		)
	})
}
