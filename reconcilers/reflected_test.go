// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// reflectionWorld returns a resource whose child cannot be created at first.
func reflectionWorld(t *testing.T, cause error, edits ...func(*childReconciler)) (*world, *resourceReconciler) {
	w := newWorld(t, newResource())
	w.Fail("create ConfigMap", cause)
	return w, &resourceReconciler{Name: t.Name(), Config: w.Config, Reconciler: newChildReconciler(w, edits...)}
}

// A child that the API server rejects is retried with growing delays until it is accepted.
func TestReflectedErrors_AreRetriedSlowly(t *testing.T) {
	ctx := calledby.Controller()
	for name, cause := range map[string]error{"Forbidden": errForbidden, "Invalid": errInvalid} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, r := reflectionWorld(t, cause)
				reconcile := func() time.Duration {
					t.Helper()
					result, err := r.Reconcile(ctx, testRequest)
					wantErr(t, nil, err)
					return result.RequeueAfter
				}
				delays := []time.Duration{}
				for range 7 {
					delays = append(delays, reconcile())
					time.Sleep(delays[len(delays)-1])
				}
				equal(t, "delays", []time.Duration{
					10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute,
					5 * time.Minute,
				}, delays)
				equal(t, "retry", 5*time.Minute, reconcile())

				// A reconcile between retries neither postpones the retry nor increases the delay.
				time.Sleep(time.Minute)
				equal(t, "an event meanwhile", 4*time.Minute, reconcile())
				equal(t, "reflected errors", 9.0, apitest.Counted(t, "trueup_reflected_errors_total", map[string]string{
					"controller": t.Name(), "reason": name,
				}))

				w.Heal()
				equal(t, "success", 0, reconcile())
				equal(t, "creates", 10, w.Count("create ConfigMap"))
				w.Fail("create ConfigMap", cause)
				wantErr(t, nil, w.Server.Delete(context.Background(), newConfigMap("child")))
				equal(t, "the next failure", 10*time.Second, reconcile())
			})
		})
	}
}

// An object that has the name of the child is watched, so a watch event announces its deletion.
func TestReflectedErrors_AreNotPolledIfTheObjectIsWatched(t *testing.T) {
	ctx := calledby.Controller()
	blocker := newConfigMap("child", orphan)
	for name, tc := range map[string]struct {
		edits []func(*childReconciler)
		want  time.Duration
	}{
		"tracked": {nil, 0},
		"not tracked": {
			[]func(*childReconciler){withoutOwner, func(r *childReconciler) { r.OurChild = notBlocking }}, 10 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(), blocker)
			r := &resourceReconciler{Config: w.Config, Reconciler: newChildReconciler(w, tc.edits...)}
			result, err := r.Reconcile(ctx, testRequest)
			wantErr(t, nil, err)
			equal(t, "RequeueAfter", tc.want, result.RequeueAfter.Round(time.Second))
			equal(t, "creates", 1, w.Count("create ConfigMap"))
		})
	}
}

// notBlocking is an OurChild function that returns false for every stored object.
func notBlocking(_ *fixture.Resource, child *corev1.ConfigMap) bool {
	return child.CreationTimestamp.IsZero()
}

// A test that calls a reconciler directly receives the result of the reconcilers.
func TestReflectedErrors_DoNotChangeTheResultOfADirectCall(t *testing.T) {
	_, r := reflectionWorld(t, errForbidden)
	result, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	equal(t, "result", reconcilers.Result{}, result)
}

// A later step that waits longer does not postpone the retry.
func TestReflectedErrors_AreRetriedBeforeALaterHalt(t *testing.T) {
	ctx := calledby.Controller()
	for name, tc := range map[string]struct {
		halt  error
		after time.Duration
	}{
		"halt":                 {reconcilers.ErrHaltSubReconcilers, time.Hour},
		"retry after":          {reconcilers.ErrRetryAfter, time.Hour},
		"retry after an event": {reconcilers.ErrRetryAfter, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := reflectionWorld(t, errForbidden)
			r.Reconciler = sequence{r.Reconciler, returning(reconcilers.Result{RequeueAfter: tc.after}, tc.halt)}
			for _, when := range []string{"status is written", "status is unchanged"} {
				result, err := r.Reconcile(ctx, testRequest)
				wantErr(t, nil, err)
				equal(t, "RequeueAfter, "+when, 10*time.Second, result.RequeueAfter.Round(time.Second))
			}
		})
	}
}
