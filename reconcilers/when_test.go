// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtime "trueup.dev/time"
)

// calls is a subreconciler that counts its calls and returns err.
type calls struct {
	*syncReconciler
	count int
	err   error
}

func newCalls() *calls {
	c := &calls{}
	call := func(context.Context, *fixture.Resource) error {
		c.count++
		return c.err
	}
	c.syncReconciler = &syncReconciler{Sync: call, Finalize: call}
	return c
}

// played is one reconcile at a time after the start, and what is expected of it.
type played struct {
	at     time.Duration
	change func(*fixture.Resource)
	err    error
	// calls is the number of calls so far, and after the requested requeue.
	calls int
	after time.Duration
	fails error
}

// play reconciles a resource at several times.
func play(t *testing.T, r subReconciler, inner *calls, resource *fixture.Resource, steps ...played) {
	t.Helper()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range steps {
		if step.change != nil {
			step.change(resource)
		}
		inner.err = step.err
		result, err := r.Reconcile(rtime.StashNow(context.Background(), start.Add(step.at)), resource)
		what := fmt.Sprintf(" at %s", step.at)
		equal(t, "calls"+what, step.calls, inner.count)
		equal(t, "requeue"+what, step.after, result.RequeueAfter)
		if !errors.Is(err, step.fails) || step.fails == nil && err != nil {
			t.Errorf("error%s: want %v, got %v", what, step.fails, err)
		}
	}
}

func requestedAt(value string) func(*fixture.Resource) {
	return func(r *fixture.Resource) {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, reconcilers.AnnotationReconcileAt, value)
	}
}

func generation(n int64) func(*fixture.Resource) {
	return func(r *fixture.Resource) { r.Generation = n }
}

func TestRetry(t *testing.T) {
	conflict := apierrs.NewConflict(schema.GroupResource{}, "a", nil)
	wait, halt := reconcilers.ErrRetryAfter, reconcilers.ErrHaltSubReconcilers
	for name, tc := range map[string]struct {
		retry *retry
		steps []played
	}{
		"backs off and resets on success": {&retry{MaxDelay: 3 * time.Second}, []played{
			{at: 0, err: errTest, calls: 1, after: time.Second, fails: errTest},
			{at: 400 * time.Millisecond, calls: 1, after: 600 * time.Millisecond, fails: wait},
			{at: time.Second, err: errTest, calls: 2, after: 2 * time.Second, fails: wait},
			{at: 3 * time.Second, err: errTest, calls: 3, after: 3 * time.Second, fails: wait},
			{at: 6 * time.Second, calls: 4},
			{at: 6 * time.Second, err: errTest, calls: 5, after: time.Second, fails: wait},
		}},
		"runs at once on a new generation, a request, and the deletion": {&retry{InitialDelay: time.Minute}, []played{
			{err: errTest, calls: 1, after: time.Minute, fails: wait},
			{change: generation(2), err: errTest, calls: 2, after: time.Minute, fails: wait},
			{change: requestedAt("x"), err: errTest, calls: 3, after: time.Minute, fails: wait},
			{err: errTest, calls: 3, after: time.Minute, fails: wait},
			{change: terminating, err: errTest, calls: 4, after: time.Minute, fails: wait},
		}},
		"gives up": {&retry{MaxAttempts: 2}, []played{
			{err: errTest, calls: 1, after: time.Second, fails: wait},
			{at: time.Second, err: errTest, calls: 2, fails: wait},
			{at: time.Hour, err: errTest, calls: 2, fails: errTest},
			{at: time.Hour, change: generation(2), calls: 3},
		}},
		"continues, but not during the deletion": {&retry{Continue: true}, []played{
			{err: errTest, calls: 1, after: time.Second},
			{err: errTest, calls: 1, after: time.Second},
			{change: terminating, err: errTest, calls: 2, after: time.Second, fails: wait},
		}},
		"leaves halts and conflicts alone": {&retry{}, []played{
			{err: halt, calls: 1, fails: halt},
			{err: conflict, calls: 2, fails: conflict},
			{err: conflict, calls: 3, fails: conflict},
		}},
		"asks Retryable": {&retry{Retryable: func(err error) bool { return !errors.Is(err, errTest) }}, []played{
			{err: errTest, calls: 1, fails: errTest}, {err: conflict, calls: 2, after: time.Second, fails: wait},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inner := newCalls()
			tc.retry.Reconciler = inner
			play(t, tc.retry, inner, newResource(), tc.steps...)
		})
	}
}

func TestRetry_Exhausted(t *testing.T) {
	w := newWorld(t)
	inner := newCalls()
	inner.err = errTest
	r := &retry{Name: "publish", MaxAttempts: 1, Reconciler: inner}
	for range 3 {
		_, err := r.Reconcile(w.Context(), newResource())
		exhausted := &reconcilers.ErrRetriesExhausted{}
		if !errors.As(err, &exhausted) || exhausted.Attempts != 1 || !errors.Is(err, errTest) {
			t.Errorf("got error %v", err)
		}
	}
	equal(t, "events", 1, w.Count("event"))
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocks := &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
			<-ctx.Done()
			return fmt.Errorf("call: %w", ctx.Err())
		}}
		start := time.Now()
		_, err := (&timeout{Name: "publish", After: time.Minute, Reconciler: blocks}).
			Reconcile(context.Background(), newResource())
		wantText(t, "publish did not finish within 1m0s: call: context deadline exceeded", err)
		wantErr(t, context.DeadlineExceeded, err)
		equal(t, "duration", time.Minute, time.Since(start))

		// A list stops between two steps, and the error is not wrapped twice.
		slow := &syncReconciler{Sync: func(context.Context, *fixture.Resource) error {
			time.Sleep(time.Hour)
			return nil
		}}
		_, err = (&timeout{After: time.Minute, Reconciler: sequence{slow, never(t)}}).
			Reconcile(context.Background(), newResource())
		wantText(t, "Timeout did not finish within 1m0s", err)

		// Errors before the deadline, and a success after it, are unchanged.
		_, err = (&timeout{After: time.Minute, Reconciler: returning(reconcilers.Result{}, errTest)}).
			Reconcile(context.Background(), newResource())
		wantText(t, errTest.Error(), err)
		_, err = (&timeout{After: time.Minute, Reconciler: slow}).Reconcile(context.Background(), newResource())
		wantErr(t, nil, err)

		// The deadline of the caller is not the deadline of the step.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = (&timeout{After: time.Minute, Reconciler: blocks}).Reconcile(ctx, newResource())
		wantText(t, "call: context deadline exceeded", err)
	})
}

func TestRateLimit(t *testing.T) {
	wait := reconcilers.ErrRetryAfter
	inner := newCalls()
	one, two := newResource(), newResource()
	one.UID, two.UID = "one", "two"
	r := &rateLimit{Runs: 2, Interval: time.Minute, Reconciler: inner}
	play(t, r, inner, one, played{calls: 1}, played{at: 10 * time.Second, calls: 2})
	play(t, r, inner, two, played{at: 20 * time.Second, calls: 2, after: 40 * time.Second, fails: wait})
	// The next one gets the next time, and a repeated request keeps the reserved time.
	play(t, r, inner, one, played{at: 20 * time.Second, calls: 2, after: 50 * time.Second, fails: wait})
	play(t, r, inner, two,
		played{at: 30 * time.Second, calls: 2, after: 30 * time.Second, fails: wait}, played{at: time.Minute, calls: 3})
	play(t, r, inner, one,
		played{at: time.Minute, calls: 3, after: 10 * time.Second, fails: wait},
		played{at: time.Minute, change: requestedAt("x"), calls: 4},
		played{at: time.Minute, calls: 4, after: time.Minute, fails: wait})

	inner = newCalls()
	r = &rateLimit{Interval: time.Minute, PerResource: true, Continue: true, Reconciler: inner}
	play(t, r, inner, one, played{calls: 1}, played{calls: 1, after: time.Minute})
	play(t, r, inner, two,
		played{calls: 2}, played{calls: 2, after: time.Minute},
		played{change: terminating, calls: 2, after: time.Minute, fails: wait})
}

func TestPeriodic(t *testing.T) {
	inner := newCalls()
	resource := newResource()
	r := &periodic{Interval: time.Hour, Reconciler: inner}
	next := func(at time.Duration) time.Duration {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		fresh := &periodic{Interval: time.Hour, Reconciler: newCalls()}
		result, _ := fresh.Reconcile(rtime.StashNow(context.Background(), start.Add(at)), resource)
		return at + result.RequeueAfter
	}
	first := next(0)
	if first <= 30*time.Minute || first > 90*time.Minute {
		t.Errorf("the first gap is %s", first)
	}
	equal(t, "time after a restart", first, next(time.Minute))
	late := first + time.Minute
	play(t, r, inner, resource,
		played{calls: 1, after: first},
		played{at: time.Minute, calls: 1, after: first - time.Minute},
		// A late run does not move the schedule.
		played{at: late, calls: 2, after: time.Hour - time.Minute},
		played{at: late, change: requestedAt("x"), calls: 3, after: time.Hour - time.Minute},
		played{at: late, change: generation(7), err: errTest, calls: 4, fails: errTest},
		played{at: late, calls: 5, after: time.Hour - time.Minute},
		played{at: late, calls: 5, after: time.Hour - time.Minute},
		played{at: late, change: terminating, calls: 6}, played{at: late, calls: 7})
}

func TestPeriodic_SpreadsResources(t *testing.T) {
	const resources, buckets = 10_000, 10
	r := &periodic{Interval: time.Hour, Reconciler: newCalls()}
	ctx := rtime.StashNow(context.Background(), time.Unix(1_700_000_000, 0))
	counts := [buckets]int{}
	for i := range resources {
		resource := newResource()
		resource.UID = types.UID(fmt.Sprintf("4f1c6b5e-9d0a-4b7e-8f3a-%012d", i))
		result, err := r.Reconcile(ctx, resource)
		wantErr(t, nil, err)
		counts[(result.RequeueAfter-30*time.Minute-1)*buckets/time.Hour]++
	}
	for i, count := range counts {
		if count < resources/buckets*8/10 || count > resources/buckets*12/10 {
			t.Errorf("%d resources run in part %d of the hour: %v", count, i, counts)
		}
	}
}

func TestPeriodic_LastRun(t *testing.T) {
	last := time.Date(2025, 12, 31, 23, 59, 0, 0, time.UTC)
	inner := newCalls()
	r := &periodic{
		Interval: time.Hour, Reconciler: inner,
		LastRun: func(context.Context, *fixture.Resource) time.Time { return last },
	}
	ctx := rtime.StashNow(context.Background(), last.Add(time.Minute))
	_, err := r.Reconcile(ctx, newResource())
	wantErr(t, nil, err)
	equal(t, "calls after a restart", 0, inner.count)

	asked := newResource()
	asked.UID = "asked"
	requestedAt(last.Add(time.Second).Format(time.RFC3339))(asked)
	_, err = r.Reconcile(ctx, asked)
	wantErr(t, nil, err)
	equal(t, "calls for a request while the controller was not running", 1, inner.count)
}

// What a run wrote to the status is lost if the status is not stored. Then the run does not count.
func TestPeriodic_StatusIsNotStored(t *testing.T) {
	w := newWorld(t, newResource())
	inner := newCalls()
	inner.Sync = func(_ context.Context, resource *fixture.Resource) error {
		inner.count++
		resource.Status.Fields = map[string]string{"ran": "yes"}
		return nil
	}
	r := &resourceReconciler{Config: w.Config, Reconciler: &periodic{Interval: time.Hour, Reconciler: inner}}
	w.Fail("update Resource/status", errTest)
	_, err := r.Reconcile(context.Background(), testRequest)
	if !errors.Is(err, errTest) {
		t.Errorf("error of the status: want %v, got %v", errTest, err)
	}
	w.Heal()
	for _, attempt := range []string{"after the failure", "after the success"} {
		_, err := r.Reconcile(context.Background(), testRequest)
		wantErr(t, nil, err)
		equal(t, "calls "+attempt, 2, inner.count)
	}
}

type (
	retry     = reconcilers.Retry[*fixture.Resource]
	timeout   = reconcilers.Timeout[*fixture.Resource]
	rateLimit = reconcilers.RateLimit[*fixture.Resource]
	periodic  = reconcilers.Periodic[*fixture.Resource]
	paused    = reconcilers.Paused[*fixture.Resource]
)

func TestDeferring_Validate(t *testing.T) {
	invalid := &syncReconciler{Name: "x"}
	const why = `: SyncReconciler "x" must implement Sync or SyncWithResult`
	for name, tc := range map[string]validated{
		"Retry": {reconciler: &retry{Reconciler: nothing()}},
		"Retry, wrong": {
			&retry{InitialDelay: -time.Second, MaxDelay: -time.Minute, MaxAttempts: -1}, []string{
				`Retry "Retry" must implement Reconciler`,
				`Retry "Retry" must define a positive InitialDelay, got -1s`,
				`Retry "Retry" must define a MaxDelay of at least -1s, got -1m0s`,
				`Retry "Retry" must not define a negative MaxAttempts, got -1`,
			}, nil,
		},
		"Retry, invalid below": {
			&retry{Reconciler: invalid}, nil, []string{`Retry "Retry" must have a valid Reconciler` + why},
		},
		"Timeout": {reconciler: &timeout{After: time.Second, Reconciler: nothing()}},
		"Timeout, empty": {
			&timeout{},
			[]string{`Timeout "Timeout" must define a positive After, got 0s`, `Timeout "Timeout" must implement Reconciler`},
			nil,
		},
		"Timeout, invalid below": {
			&timeout{After: time.Second, Reconciler: invalid}, nil, []string{
				`Timeout "Timeout" must have a valid Reconciler` + why,
			},
		},
		"RateLimit": {reconciler: &rateLimit{Interval: time.Second, Reconciler: nothing()}},
		"RateLimit, wrong": {
			&rateLimit{Runs: -1}, []string{
				`RateLimit "RateLimit" must define a positive Runs, got -1`,
				`RateLimit "RateLimit" must define a positive Interval, got 0s`,
				`RateLimit "RateLimit" must implement Reconciler`,
			}, nil,
		},
		"RateLimit, invalid below": {
			&rateLimit{Interval: time.Second, Reconciler: invalid}, nil, []string{
				`RateLimit "RateLimit" must have a valid Reconciler` + why,
			},
		},
		"Periodic": {reconciler: &periodic{Interval: time.Hour, Reconciler: nothing()}},
		"Periodic, empty": {
			&periodic{}, []string{
				`Periodic "Periodic" must define a positive Interval, got 0s`, `Periodic "Periodic" must implement Reconciler`,
			}, nil,
		},
		"Periodic, invalid below": {
			&periodic{Interval: time.Hour, Reconciler: invalid}, nil, []string{
				`Periodic "Periodic" must have a valid Reconciler` + why,
			},
		},
		"Paused":        {reconciler: &paused{Condition: "Paused", Reconciler: nothing()}},
		"Paused, empty": {&paused{Name: "n"}, []string{`Paused "n" must implement Reconciler`}, nil},
		"Paused, without conditions": {
			&reconcilers.Paused[*corev1.ConfigMap]{
				Condition: "Paused", Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{},
			},
			[]string{`Paused "Paused" may not define Condition: ConfigMap has no field Conditions of type []metav1.Condition ` +
				`in its status`},
			nil,
		},
		"Paused, invalid below": {
			&paused{Reconciler: invalid}, nil, []string{`Paused "Paused" must have a valid Reconciler` + why},
		},
	} {
		t.Run(name, tc.check)
	}
}

func TestPaused(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation, by string
		want           string
	}{
		"not":                    {},
		"not, said explicitly":   {annotation: "false"},
		"true":                   {annotation: "true", want: "paused: annotation trueup.dev/paused"},
		"with a reason":          {annotation: "until Friday", want: "paused: until Friday"},
		"by the function":        {by: "cluster", want: "paused: cluster"},
		"the function after no":  {annotation: "false", by: "cluster", want: "paused: cluster"},
		"the annotation goes on": {annotation: "until Friday", by: "cluster", want: "paused: until Friday"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := newCalls()
			r := &paused{
				Reconciler: inner,
				PausedBy:   func(context.Context, *fixture.Resource) (string, error) { return tc.by, nil },
			}
			resource := newResource()
			if tc.annotation != "" {
				metav1.SetMetaDataAnnotation(&resource.ObjectMeta, reconcilers.AnnotationPaused, tc.annotation)
			}
			result, err := r.Reconcile(context.Background(), resource)
			equal(t, "result", reconcilers.Result{}, result)
			if tc.want == "" {
				wantErr(t, nil, err)
				equal(t, "calls", 1, inner.count)
				return
			}
			equal(t, "calls", 0, inner.count)
			wantErr(t, reconcilers.ErrRetryAfter, err)
			wantErr(t, reconcilers.ErrSkipStatusUpdate, err)
			contains(t, err.Error(), tc.want)
		})
	}
}

func TestPaused_FunctionFails(t *testing.T) {
	_, err := (&paused{
		Reconciler: never(t), PausedBy: func(context.Context, *fixture.Resource) (string, error) { return "", errTest },
	}).Reconcile(context.Background(), newResource())
	wantErr(t, errTest, err)
}

// A paused resource is not written: not by the reconciler below, not its finalizers, not its status, not even while it
// is being deleted.
func TestPaused_WritesNothing(t *testing.T) {
	for name, deleting := range map[string]bool{"alive": false, "being deleted": true} {
		t.Run(name, func(t *testing.T) {
			resource := newResource()
			resource.Finalizers = []string{"test.trueup.dev/mine"}
			metav1.SetMetaDataAnnotation(&resource.ObjectMeta, reconcilers.AnnotationPaused, "true")
			if deleting {
				terminating(resource)
			}
			w := newWorld(t, resource)
			inner := newCalls()
			root := &resourceReconciler{
				Type: &fixture.Resource{}, Config: w.Config,
				Reconciler: &paused{Reconciler: &reconcilers.WithFinalizer[*fixture.Resource]{
					Finalizer: "test.trueup.dev/mine", Reconciler: inner,
				}},
			}
			request := requestFor(resource)
			for range 3 {
				_, err := root.Reconcile(context.Background(), request)
				wantErr(t, nil, err)
			}
			equal(t, "writes and events", []string(nil), w.Writes())
			equal(t, "calls", 0, inner.count)
		})
	}
}

// The condition costs one write when the resource is paused, and one when it resumes.
func TestPaused_Condition(t *testing.T) {
	resource := newResource()
	metav1.SetMetaDataAnnotation(&resource.ObjectMeta, reconcilers.AnnotationPaused, "until Friday")
	w := newWorld(t, resource)
	inner := newCalls()
	root := &resourceReconciler{
		Type: &fixture.Resource{}, Config: w.Config, Reconciler: &paused{Condition: "Paused", Reconciler: inner},
	}
	reconcile := func() {
		t.Helper()
		_, err := root.Reconcile(context.Background(), requestFor(resource))
		wantErr(t, nil, err)
	}
	condition := func() *metav1.Condition {
		for _, c := range stored(w, resource).Status.Conditions {
			if c.Type == "Paused" {
				return &c
			}
		}
		return nil
	}
	reconcile()
	if c := condition(); c == nil || c.Status != metav1.ConditionTrue || c.Message != "until Friday" {
		t.Errorf("got condition %v", c)
	}
	w.Trace()
	reconcile()
	equal(t, "writes while paused", []string(nil), w.Writes())

	resumed := stored(w, resource)
	resumed.Annotations = nil
	wantErr(t, nil, w.Server.Update(context.Background(), resumed))
	reconcile()
	equal(t, "calls after the resume", 1, inner.count)
	if c := condition(); c != nil {
		t.Errorf("the condition was not removed: %v", c)
	}
}
