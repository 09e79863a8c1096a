// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// Without a retry policy the rate limiter schedules retries. A failing handler that writes the status must not bypass
// it.
func TestWithEdge_RateLimiterIsNotDefeatedByNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		calls := 0
		for resourceVersion := 1; time.Since(started(t)) < 5*time.Second; resourceVersion++ {
			b.errs = []error{errTest}
			if _, err := b.see(version("a", 1, resourceVersion)); err == nil {
				t.Fatal("no error")
			}
			calls += len(b.lines)
			b.lines = nil
			time.Sleep(time.Millisecond)
		}
		// 5 ms, doubled after each failure.
		if calls < 5 || calls > 12 {
			t.Errorf("%d calls in 5 s", calls)
		}
		b.errs = nil
		b.handle(version("a", 2, 10_000))
		b.want(t, "Created a 2")
	})
}

// started is the start time of a synctest bubble.
func started(*testing.T) time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// A panic is a failure: the policy is called, and the panic propagates.
func TestWithEdge_PanicIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, version("a", 1, 1))
		b.RetryPolicy = func(_ error, attempt int) (bool, time.Duration) { return attempt < 1, time.Minute }
		calls := 0
		b.Reconciler = &reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(context.Context, *fixture.Resource) error {
			calls++
			panic("on purpose")
		}}
		for range 5 {
			func() {
				defer func() { _ = recover() }()
				_, _ = b.see(b.stored())
			}()
			time.Sleep(time.Minute)
		}
		equal(t, "calls", 2, calls)
		equal(t, "events", []string{
			"HandlerFailed: Created failed, it will be tried again: the handler panicked",
			"RetriesExhausted: Giving up on Created after 2 attempts, until the resource changes: the handler panicked",
		}, b.world.events)
	})
}

// No call begins after the controller began to stop.
func TestWithEdge_Stopped(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(b.context())
	cancel()
	_, err := b.Reconcile(ctx, version("a", 1, 1))
	wantErr(t, err, reconcilers.ErrQuiet, context.Canceled)
	b.want(t)
}

// For a handler, a resource that the controller no longer selects is deleted. Its finalizer must be removed, because
// no call would remove it later.
func TestOpinionated_LeavesTheSelection(t *testing.T) {
	b := newBench(t, version("a", 1, 1))
	opinionated := &operator.Opinionated[*fixture.Resource]{Finalizer: testFinalizer, Handler: b.WithEdge}
	b.appears(b.stored())
	if _, err := opinionated.Reconcile(b.context(), b.stored()); err != nil {
		t.Fatal(err)
	}
	equal(t, "finalizers", []string{testFinalizer}, b.stored().Finalizers)

	b.vanishes(b.stored())
	b.errs = []error{errTest}
	_, err := opinionated.Absent(b.context(), testRequest)
	wantErr(t, err, errTest)
	equal(t, "finalizers after a failure", []string{testFinalizer}, b.stored().Finalizers)
	if _, err := opinionated.Absent(b.context(), testRequest); err != nil {
		t.Fatal(err)
	}
	equal(t, "finalizers", 0, len(b.stored().Finalizers))
	b.want(t, "Created a 1", "Deleted a 1>1", "Deleted a 1>1, attempt 1")
}

// A terminal error is not retried, even without a policy.
func TestWithEdge_TerminalWithoutPolicy(t *testing.T) {
	b := newBench(t)
	b.errs = []error{reconcile.TerminalError(errTest)}
	_, err := b.see(version("a", 1, 1))
	wantErr(t, err, reconcile.TerminalError(nil), errTest)
	_, err = b.see(version("a", 1, 2))
	if !errors.Is(err, reconcilers.ErrRetryAfter) {
		t.Errorf("error: %v", err)
	}
	b.want(t, "Created a 1")
}
