// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

var (
	requeue     = reconcilers.Result{Requeue: true} //nolint:staticcheck // what is pinned
	errConflict = apierrs.NewConflict(schema.GroupResource{Resource: "resources"}, "test", errors.New("changed meanwhile"))
	errInvalid  = apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "test", nil)
)

func TestResourceReconciler_Status(t *testing.T) {
	const update = "update Resource/status default/test"
	const updated = "event default/test Normal StatusUpdated: Updated status"
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	// Managed is what a controller gets. It differs where the status was written.
	type outcome struct {
		result, managed reconcilers.Result
		err             error
		writes          []string
	}
	for name, tc := range map[string]struct {
		reason     string
		skip       bool
		fail       map[string]error
		reconciler *syncReconciler
		want       outcome
	}{
		"nothing changes": {
			reason:     "results are returned as they are",
			reconciler: returning(minute, nil),
			want:       outcome{result: minute, managed: minute},
		},
		"nothing changes and failure": {
			reason:     "errors are returned as they are",
			reconciler: returning(minute, errTest),
			want:       outcome{result: minute, managed: minute, err: errTest},
		},
		"written": {
			reason:     "the write triggers the next request, so the result is empty",
			reconciler: setField(minute, nil),
			want:       outcome{managed: minute, writes: []string{update, updated}},
		},
		"written and failure": {
			reason:     "an error is not swallowed by the write",
			reconciler: setField(minute, errTest),
			want:       outcome{managed: minute, err: errTest, writes: []string{update, updated}},
		},
		"written and halt": {
			reason:     "a halt is no failure",
			reconciler: setField(minute, reconcilers.ErrHaltSubReconcilers),
			want:       outcome{managed: minute, writes: []string{update, updated}},
		},
		"written and durable": {
			reason:     "a durable error is not retried before something changes",
			reconciler: setField(reconcilers.Result{}, reconcilers.ErrDurable),
			want:       outcome{writes: []string{update, updated}},
		},
		"written and quiet failure": {
			reason:     "a quiet failure is retried with back-off, without an error, and does not wait a minute",
			reconciler: setField(minute, errQuiet),
			want:       outcome{managed: requeue, writes: []string{update, updated}},
		},
		"halt": {
			reason:     "a halt without a change asks for back-off",
			reconciler: returning(reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers),
			want:       outcome{result: requeue, managed: requeue},
		},
		"quiet failure": {
			reason:     "quiet means back-off without an error",
			reconciler: returning(minute, errQuiet),
			want:       outcome{result: requeue, managed: requeue},
		},
		"skipped by the error": {
			reason:     "ErrSkipStatusUpdate alone is an error like any other",
			reconciler: setField(minute, reconcilers.ErrSkipStatusUpdate),
			want:       outcome{result: minute, managed: minute, err: reconcilers.ErrSkipStatusUpdate},
		},
		"skipped by a quiet error": {
			reason:     "joined with ErrQuiet it is none",
			reconciler: setField(minute, errors.Join(reconcilers.ErrSkipStatusUpdate, reconcilers.ErrQuiet)),
			want:       outcome{result: requeue, managed: requeue},
		},
		"skipped by the field": {
			reason:     "SkipStatusUpdate returns results and errors as they are",
			skip:       true,
			reconciler: setField(minute, errTest),
			want:       outcome{result: minute, managed: minute, err: errTest},
		},
		"conflict": {
			reason:     "the change that came first triggers the next request, so a conflict is no failure; a controller tries again in any case, and does not wait a minute",
			fail:       map[string]error{update: errConflict},
			reconciler: setField(minute, nil),
			want:       outcome{managed: requeue, writes: []string{update}},
		},
		"conflict and failure": {
			reason:     "the error is not swallowed by the conflict",
			fail:       map[string]error{update: errConflict},
			reconciler: setField(reconcilers.Result{}, errTest),
			want:       outcome{managed: requeue, err: errTest, writes: []string{update}},
		},
		"write fails": {
			reason:     "the failure is returned and recorded",
			fail:       map[string]error{update: errTest},
			reconciler: setField(minute, nil),
			want: outcome{err: errTest, writes: []string{
				update, "event default/test Warning StatusUpdateFailed: Failed to update status: failure of the test",
			}},
		},
		"an equal value with another spelling": {
			reason: "statuses are compared by what they mean",
			reconciler: &syncReconciler{Sync: func(_ context.Context, r *fixture.Resource) error {
				r.Status.Size = new(resource.MustParse("1000m"))
				return nil
			}},
		},
		"only the spec changes": {
			reason: "changes in memory to anything but the status are not written",
			reconciler: &syncReconciler{Sync: func(_ context.Context, r *fixture.Resource) error {
				r.Spec.Fields["other"] = "value"
				r.Labels = map[string]string{"other": "value"}
				return nil
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := newResource(settled, func(r *fixture.Resource) { r.Status.Size = new(resource.MustParse("1")) })
			newReconciler := func(w *world) *resourceReconciler {
				for line, err := range tc.fail {
					w.Fail(line, err)
				}
				return &resourceReconciler{Config: w.Config, SkipStatusUpdate: tc.skip, Reconciler: tc.reconciler}
			}
			w := newWorld(t, given)
			result, err := newReconciler(w).Reconcile(context.Background(), testRequest)
			wantErr(t, tc.want.err, err)
			equal(t, "result", tc.want.result, result)
			equal(t, "writes", tc.want.writes, w.Writes())

			w = newWorld(t, given)
			result, err = newReconciler(w).ReconcileManaged(context.Background(), testRequest)
			wantErr(t, tc.want.err, err)
			equal(t, "result for the manager", tc.want.managed, result)
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

func TestResourceReconciler_ObservedGeneration(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int64
	}{
		"success":            {nil, 7},
		"halt is no failure": {reconcilers.ErrHaltSubReconcilers, 7},
		"failure":            {errTest, 3},
		"quiet failure":      {errQuiet, 3},
	} {
		t.Run(name, func(t *testing.T) {
			given := newResource(settled, func(r *fixture.Resource) { r.Generation, r.Status.ObservedGeneration = 7, 3 })
			w := newWorld(t, given)
			r := &resourceReconciler{Config: w.Config, Reconciler: setField(reconcilers.Result{}, tc.err)}
			if _, err := r.Reconcile(context.Background(), testRequest); errors.Is(tc.err, errTest) != errors.Is(err, errTest) {
				t.Errorf("error = %v", err)
			}
			equal(t, "observed generation", tc.want, stored(w, given).Status.ObservedGeneration)
		})
	}
}

func TestResourceReconciler_TransitionTimes(t *testing.T) {
	later := metav1.NewTime(longAgo.Add(time.Hour))
	w := newWorld(t, newResource(settled))
	r := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{Sync: func(_ context.Context, r *fixture.Resource) error {
		r.Status.Conditions = []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Initializing", LastTransitionTime: later},
		}
		return nil
	}}}
	if _, err := r.Reconcile(context.Background(), testRequest); err != nil {
		t.Fatal(err)
	}
	equal(t, "writes: a condition that says the same has not changed, whatever its time says", nil, w.Writes())
}

func TestResourceReconciler_DefaultsAreNotWritten(t *testing.T) {
	given := newResource()
	w := newWorld(t, given)
	r := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
		equal(t, "defaulted field", "ran", r.Spec.Fields[fixture.DefaulterField])
		equal(t, "reason of the initialized condition", "Initializing", r.Status.GetCondition("Ready").Reason)
		r.Status.MarkReady(ctx)
		return nil
	}}}
	if _, err := r.Reconcile(context.Background(), testRequest); err != nil {
		t.Fatal(err)
	}
	after := stored(w, given)
	equal(t, "stored spec", fixture.ResourceSpec{}, after.Spec)
	equal(t, "stored condition", metav1.ConditionTrue, after.Status.GetCondition("Ready").Status)
	equal(t, "stored observed generation", 1, after.Status.ObservedGeneration)
}

func TestDefect01_ErrorSurvivesStatusWrite(t *testing.T) {
	w := newWorld(t, newResource(settled))
	r := &resourceReconciler{Config: w.Config, Reconciler: setField(reconcilers.Result{}, errTest)}
	_, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, errTest, err)
	equal(t, "writes", []string{
		"update Resource/status default/test", "event default/test Normal StatusUpdated: Updated status",
	}, w.Writes())
}

func TestDefect07_StatusOfAResourceThatIsGoneIsNoFailure(t *testing.T) {
	const mark = "mark.example.com/it"
	given := newResource(finalizer(mark), terminating, settled)
	w := newWorld(t, given)
	r := &resourceReconciler{
		Config: w.Config, SyncStatusDuringFinalization: true,
		Reconciler: &reconcilers.WithFinalizer[*fixture.Resource]{Finalizer: mark, Reconciler: setField(reconcilers.Result{}, nil)},
	}
	result, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	equal(t, "result", reconcilers.Result{}, result)
	equal(t, "writes: there is no StatusUpdateFailed", []string{
		`patch Resource default/test application/merge-patch+json {"metadata":{"finalizers":null,"resourceVersion":"999"}}`,
		`event default/test Normal FinalizerPatched: Patched finalizer "mark.example.com/it"`,
		"update Resource/status default/test",
	}, w.Writes())
	if after := stored(w, given); after != nil {
		t.Errorf("the resource is still there: %v", after)
	}

	t.Run("but one that should be there is", func(t *testing.T) {
		w := newWorld(t, newResource(settled)).Fail("update Resource/status", apierrs.NewNotFound(schema.GroupResource{}, "test"))
		r := &resourceReconciler{Config: w.Config, Reconciler: setField(reconcilers.Result{}, nil)}
		if _, err := r.Reconcile(context.Background(), testRequest); !apierrs.IsNotFound(err) {
			t.Errorf("error = %v", err)
		}
		equal(t, "failures", 1, w.Count("event default/test Warning StatusUpdateFailed"))
	})
}
