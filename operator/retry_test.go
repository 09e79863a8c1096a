// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

func every(d time.Duration) operator.RetryPolicy {
	return func(error, int) (bool, time.Duration) { return true, d }
}

func TestWithEdge_RetryIsNotDefeatedByNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.RetryPolicy = every(time.Minute)
		b.errs = []error{errTest}
		result, err := b.see(version("a", 1, 1))
		equal(t, "result", reconcilers.Result{RequeueAfter: time.Minute}, result)
		wantErr(t, err, reconcilers.ErrRetryAfter, errTest)
		wantText(t, "waiting for the next attempt: failure of the test", err)

		time.Sleep(20 * time.Second)
		result, err = b.see(version("a", 1, 2, labeled("noise")))
		equal(t, "result of noise", reconcilers.Result{RequeueAfter: 40 * time.Second}, result)
		wantErr(t, err, reconcilers.ErrRetryAfter, errTest)
		b.want(t, "Created a 1")

		time.Sleep(40 * time.Second)
		b.handle(version("a", 1, 2))
		b.want(t, "Created a 1, attempt 1")
		equal(
			t, "events", []string{"HandlerFailed: Created failed, it will be tried again: failure of the test"}, b.world.events,
		)
	})
}

func TestWithEdge_RetryIsSuperseded(t *testing.T) {
	for name, tc := range map[string]struct {
		react operator.React
		by    *fixture.Resource
		want  []string
	}{
		"by a generation": {operator.ReactAny, version("a", 2, 2), []string{"Created a 2"}},
		"by a deletion": {
			operator.ReactAny, version("a", 1, 2, with(testFinalizer), deleting), []string{"Deleted a 1"},
		},
		"by another object of the same name": {operator.ReactAny, version("b", 1, 2), []string{"Deleted a 1", "Created b 1"}},
		"by a label that React selects": {
			operator.ReactSpec | operator.ReactLabels, version("a", 1, 2, labeled("new")), []string{"Created a 1"},
		},
		"not by a label that React does not select": {operator.ReactSpec, version("a", 1, 2, labeled("new")), nil},
		"not by a status": {operator.ReactSpec | operator.ReactStatus, version("a", 1, 2, observed), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.RetryPolicy, b.React, b.Finalizers = every(time.Hour), tc.react, []string{testFinalizer}
				b.errs = []error{errTest}
				_, _ = b.see(version("a", 1, 1))
				b.want(t, "Created a 1")
				_, _ = b.see(tc.by)
				b.want(t, tc.want...)
			})
		})
	}
}

// Without finalizers, a deletion timestamp is a change like any other. No other change follows.
func TestWithEdge_RetryIsSupersededByADeletionTimestamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.RetryPolicy = every(time.Hour)
		b.handle(version("a", 1, 1))
		b.errs = []error{errTest}
		_, _ = b.see(version("a", 2, 2))
		b.handle(version("a", 2, 3, with("example.com/other"), deleting))
		b.want(t, "Created a 1", "Updated a 1>2", "Updated a 1>2")
	})
}

func TestWithEdge_RetryDequeuePolicy(t *testing.T) {
	for _, answer := range []bool{false, true} {
		t.Run(fmt.Sprint(answer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, decisions := newBench(t), []string{}
				b.RetryPolicy = every(time.Hour)
				b.RetryDequeuePolicy = func(
					action operator.ResourceAction, object resource.Object, was operator.ResourceAction, wasObject resource.Object,
					err error,
				) bool {
					decisions = append(
						decisions,
						fmt.Sprint(
							action, " ", object.GetResourceVersion(), " for ", was, " ", wasObject.GetResourceVersion(), ": ", err,
						),
					)
					return answer
				}
				b.handle(version("a", 1, 1))
				b.errs = []error{errTest}
				_, _ = b.see(version("a", 2, 2))
				_, _ = b.see(version("a", 2, 2)) // no change, so the policy is not called
				result, _ := b.see(version("a", 3, 3))
				equal(t, "calls of the policy", []string{"UPDATE 3 for UPDATE 2: failure of the test"}, decisions)
				if answer {
					equal(t, "result", reconcilers.Result{}, result)
					b.want(t, "Created a 1", "Updated a 1>2", "Updated a 1>3")
					return
				}
				equal(t, "result", reconcilers.Result{RequeueAfter: time.Hour}, result)
				b.want(t, "Created a 1", "Updated a 1>2")
				time.Sleep(time.Hour)
				b.handle(version("a", 3, 3))
				b.want(t, "Updated a 1>3, attempt 1")
			})
		})
	}
}

func TestWithEdge_Outcomes(t *testing.T) {
	given := func(err error, result ...time.Duration) func(*bench) {
		return func(b *bench) {
			b.errs = []error{err}
			if len(result) > 0 {
				b.errs, b.after = nil, result[0]
			}
		}
	}
	quiet := fmt.Errorf("quiet failure: %w", reconcilers.ErrQuiet)
	for name, tc := range map[string]struct {
		reason string
		do     func(*bench)
		want   reconcilers.Result
		errs   []error
		// next are the calls for the same resource immediately, and later those after an hour.
		next, later []string
	}{
		"success": {reason: "no call follows", do: func(*bench) {}},
		"success, and another call": {
			reason: "the action stays the same", do: given(nil, time.Minute), want: reconcilers.Result{
				RequeueAfter: time.Minute,
			}, later: []string{"Created a 1>1"},
		},
		"asks to be called again": {
			reason: "the action is not finished", do: given(operator.RequeueAfter(time.Minute)),
			want: reconcilers.Result{RequeueAfter: time.Minute},
			errs: []error{reconcilers.ErrRetryAfter}, later: []string{"Created a 1"},
		},
		"asks to be called again immediately": {
			reason: "a zero delay still leads to a call", do: given(operator.RequeueAfter(0)),
			want: reconcilers.Result{RequeueAfter: 1},
			errs: []error{reconcilers.ErrRetryAfter}, next: []string{"Created a 1"},
		},
		"asks to be called again, with a reason": {
			reason: "it is not a failure", do: given(fmt.Errorf("not ready: %w", operator.RequeueAfter(time.Minute))),
			want: reconcilers.Result{
				RequeueAfter: time.Minute,
			}, errs: []error{reconcilers.ErrRetryAfter}, later: []string{"Created a 1"},
		},
		"fails and asks to be called again": {
			reason: "the failure keeps its delay", do: given(errors.Join(errTest, operator.RequeueAfter(time.Minute))),
			want: reconcilers.Result{RequeueAfter: time.Minute}, errs: []error{
				errTest, reconcilers.ErrRetryAfter,
			}, later: []string{"Created a 1"},
		},
		"fails": {
			reason: "the rate limiter determines the delay", do: given(errTest), errs: []error{errTest},
			next: []string{"Created a 1, attempt 1"},
		},
		"fails quietly": {
			reason: "retry policies do not apply to quiet errors", do: func(b *bench) {
				given(quiet)(b)
				b.RetryPolicy = every(time.Minute)
			},
			errs: []error{quiet}, next: []string{"Created a 1, attempt 1"},
		},
		"halts": {
			reason: "halting is a success", do: given(reconcilers.ErrHaltSubReconcilers),
			errs: []error{reconcilers.ErrHaltSubReconcilers},
		},
		"fails with a terminal error": {
			reason: "terminal errors are not retried", do: given(reconcile.TerminalError(errTest)), errs: []error{
				reconcile.TerminalError(nil), errTest,
			},
		},
		"is exhausted": {
			reason: "the policy allows no retry", do: func(b *bench) {
				given(errTest)(b)
				b.RetryPolicy = func(error, int) (bool, time.Duration) { return false, 0 }
			},
			errs: []error{reconcile.TerminalError(nil), errTest},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				tc.do(b)
				result, err := b.see(version("a", 1, 1))
				equal(t, "result, for "+tc.reason, tc.want, result)
				wantErr(t, err, tc.errs...)
				b.want(t, "Created a 1")
				_, _ = b.see(version("a", 1, 1))
				b.want(t, tc.next...)
				time.Sleep(time.Hour)
				_, _ = b.see(version("a", 1, 1))
				b.want(t, tc.later...)
			})
		})
	}
}

func TestWithEdge_UnfinishedDeletionKeepsTheFinalizer(t *testing.T) {
	for name, tc := range map[string]struct {
		give func(*bench)
		want string
	}{
		"with a delay": {func(b *bench) { b.after = time.Minute }, "waiting to be called again"},
		"by an error": {
			func(b *bench) { b.errs = []error{operator.RequeueAfter(time.Minute)} }, "waiting to be called again",
		},
		"because it has failed": {
			func(b *bench) { b.errs, b.RetryPolicy = []error{errTest}, every(time.Minute) },
			"waiting for the next attempt: failure of the test",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.Finalizers = []string{testFinalizer}
				tc.give(b)
				deleted := version("a", 2, 2, with(testFinalizer), deleting)
				result, err := b.see(deleted)
				equal(t, "result", reconcilers.Result{RequeueAfter: time.Minute}, result)
				wantErr(t, err, reconcilers.ErrRetryAfter) // otherwise the finalizer would be removed
				wantText(t, tc.want, err)
				b.after, b.lines = 0, nil
				time.Sleep(time.Second)
				_, err = b.see(deleted)
				wantErr(t, err, reconcilers.ErrRetryAfter)
				b.want(t)
				time.Sleep(time.Minute)
				_, err = b.see(deleted)
				wantErr(t, err)
				equal(t, "calls", 1, len(b.lines))
			})
		})
	}
}

// A handler that succeeded and asked for another call is called earlier if the resource changes.
func TestWithEdge_PollingIsSupersededByChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.after = time.Hour
		b.handle(version("a", 1, 1))
		b.handle(version("a", 1, 2, labeled("new")))
		result, err := b.see(version("a", 1, 2, labeled("new")))
		equal(t, "result", reconcilers.Result{RequeueAfter: time.Hour}, result)
		wantErr(t, err)
		b.want(t, "Created a 1", "Updated a 1>1")
	})
}

func TestWithEdge_OnError(t *testing.T) {
	b := newBench(t)
	var errs []error
	b.OnError = func(_ context.Context, _ *fixture.Resource, err error) { errs = append(errs, err) }
	b.errs = []error{errTest, operator.RequeueAfter(time.Nanosecond), reconcile.TerminalError(errTest)}
	for generation := range 4 { // each call is a first attempt
		_, _ = b.see(version("a", generation+1, generation+1))
	}
	if len(errs) != 2 || !errors.Is(errs[0], errTest) || !errors.Is(errs[1], reconcile.TerminalError(nil)) {
		t.Errorf("errors: %v", errs)
	}
}

// An exhausted call is made again when the resource changes. Until then it stops the reconcilers that follow, so that
// the finalizer is not removed.
func TestWithEdge_GivenUp(t *testing.T) {
	b := newBench(t)
	hooked := []string{}
	b.OnExhausted = func(_ context.Context, r *fixture.Resource, err error) {
		hooked = append(hooked, fmt.Sprint(r.UID, ": ", err))
	}
	b.RetryPolicy = operator.ExponentialBackoffRetryPolicy(time.Nanosecond, -1)
	b.React = operator.ReactSpec
	b.errs = []error{errTest, errTest}
	_, err := b.see(version("a", 1, 1))
	wantErr(t, err, reconcile.TerminalError(nil))
	result, err := b.see(version("a", 1, 2, labeled("noise")))
	equal(t, "result of noise", reconcilers.Result{}, result)
	wantErr(t, err, reconcilers.ErrRetryAfter)
	b.want(t, "Created a 1")

	_, err = b.see(version("a", 2, 3))
	wantErr(t, err, reconcile.TerminalError(nil))
	b.want(t, "Created a 2") // a first attempt
	b.resyncs(version("a", 2, 3))
	b.handle(version("a", 2, 3))
	b.want(t, "Created a 2")
	equal(t, "hook", []string{"a: failure of the test", "a: failure of the test"}, hooked)
	equal(t, "events", []string{
		"RetriesExhausted: Giving up on Created after 1 attempts, until the resource changes: failure of the test",
		"RetriesExhausted: Giving up on Created after 1 attempts, until the resource changes: failure of the test",
	}, b.world.events)
}

// An exhausted deletion of a resource that no longer exists is dropped, because the resource cannot change.
func TestWithEdge_GivenUpOnADeletedResource(t *testing.T) {
	given := func() *bench {
		b := newBench(t)
		b.RetryPolicy = operator.ExponentialBackoffRetryPolicy(time.Nanosecond, -1)
		b.appears(version("a", 1, 1))
		b.handle(version("a", 1, 1))
		b.vanishes(version("a", 1, 1))
		b.errs = []error{errTest}
		return b
	}
	t.Run("no other resource follows", func(t *testing.T) {
		b := given()
		_, err := b.absent()
		wantErr(t, err, reconcile.TerminalError(nil))
		b.want(t, "Created a 1", "Deleted a 1>1")
		equal(t, "records", 0, b.Records())
	})
	t.Run("another resource follows", func(t *testing.T) {
		b := given()
		b.handle(version("b", 1, 3))
		b.want(t, "Created a 1", "Deleted a 1>1", "Created b 1")
	})
}
