// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// A step that fails or halts keeps the steps that depend on it from running, but no others.
func TestSteps_Errors(t *testing.T) {
	hour := reconcilers.Result{RequeueAfter: time.Hour}
	for name, tc := range map[string]struct {
		result reconcilers.Result
		err    error
		want   reconcilers.Result
		// returned is the error of Steps. A step that halts waits, so Steps returns none.
		returned error
	}{
		"error": {err: errTest, returned: errTest},
		"retry after": {
			hour, reconcilers.ErrRetryAfter, reconcilers.Result{RequeueAfter: time.Minute}, reconcilers.ErrRetryAfter,
		},
		// The requeue for the deadline must not replace that of a halt, which is after a second.
		"halt": {err: reconcilers.ErrHaltSubReconcilers},
	} {
		t.Run(name, func(t *testing.T) {
			ran := false
			independent := &syncReconciler{Sync: func(context.Context, *fixture.Resource) error {
				ran = true
				return nil
			}}
			r := &steps{Steps: []stepOf{
				{Name: "db", Reconciler: returning(tc.result, tc.err), ProgressDeadline: time.Minute},
				{Name: "app", DependsOn: []string{"db"}, Reconciler: never(t)},
				{Name: "other", Reconciler: independent},
			}}
			resource := newResource()
			result, err := r.Reconcile(newWorld(t).Context(), resource)
			wantErr(t, tc.returned, err)
			equal(t, "the independent step has run", true, ran)
			contains(t, resource.Status.GetCondition("Ready").Message, "step db: has not finished, since ")
			if tc.err != errTest { //nolint:errorlint // identity
				equal(t, "requeue", tc.want.RequeueAfter, result.RequeueAfter.Round(time.Minute))
			}
		})
	}
}

// A child that the API server refuses is not ready, although its reconciler returns no error.
func TestSteps_ReflectedErrors(t *testing.T) {
	db := newStep("db")
	s := newStage(t, &steps{Steps: []stepOf{db, newStep("app", "db")}})
	s.Fail("create ConfigMap", errForbidden)
	s.reconcile("refused", "create ConfigMap db", statusWritten)
	c := stored(s.world, newResource()).Status.GetCondition("Ready")
	contains(t, c.Message, "step db: ConfigMap default/db: Forbidden, since ")
	equal(t, "reason", reconcilers.ReasonStepFailed, c.Reason)
	equal(t, "requeue", 10*time.Second, s.after.Round(time.Second))
	s.Heal()
	s.reconcile("accepted", "create ConfigMap db", statusWritten)
}

// Steps stop between two steps after the context has ended.
func TestSteps_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(newWorld(t).Context())
	r := &steps{Steps: []stepOf{
		{Name: "a", Reconciler: &syncReconciler{Sync: func(context.Context, *fixture.Resource) error {
			cancel()
			return nil
		}}},
		{Name: "b", Reconciler: never(t)},
		{Name: "c", Reconciler: never(t)},
	}}
	_, err := r.Reconcile(ctx, newResource())
	wantErr(t, context.Canceled, err)
}
