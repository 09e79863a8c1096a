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
	"trueup.dev/validation"
)

type sub = reconcilers.SubReconciler[*fixture.Resource]

// returns is a handler with this result.
func returns(after time.Duration, err error) sub {
	return &reconcilers.SyncReconciler[*fixture.Resource]{
		SyncWithResult: func(context.Context, *fixture.Resource) (reconcilers.Result, error) {
			return reconcilers.Result{RequeueAfter: after}, err
		},
	}
}

func TestFanOut_Result(t *testing.T) {
	other := errors.New("other failure")
	quiet := fmt.Errorf("quiet failure: %w", reconcilers.ErrQuiet)
	waiting := fmt.Errorf("waiting: %w", reconcilers.ErrRetryAfter)
	terminal := reconcile.TerminalError(errTest)
	for name, tc := range map[string]struct {
		handlers operator.FanOut[*fixture.Resource]
		want     time.Duration
		is, not  []error
		reason   string
	}{
		"none": {reason: "no handler fails"},
		"successes": {
			handlers: operator.FanOut[*fixture.Resource]{returns(0, nil), returns(0, nil)}, reason: "all is well",
		},
		"times": {
			handlers: operator.FanOut[*fixture.Resource]{returns(3, nil), returns(0, nil), returns(2, nil)}, want: 2,
			reason: "the earliest counts",
		},
		"a failure": {
			handlers: operator.FanOut[*fixture.Resource]{returns(0, errTest), returns(2, nil)}, want: 2, is: []error{errTest},
			reason: "the error is logged",
		},
		"failures": {
			handlers: operator.FanOut[*fixture.Resource]{returns(0, errTest), returns(0, other)}, is: []error{errTest, other},
			reason: "both errors are logged",
		},
		"a loud and a quiet one": {
			handlers: operator.FanOut[*fixture.Resource]{returns(0, quiet), returns(0, errTest)}, is: []error{errTest},
			not: []error{reconcilers.ErrQuiet}, reason: "the quiet one must not silence it",
		},
		"quiet ones": {
			handlers: operator.FanOut[*fixture.Resource]{returns(0, quiet), returns(0, quiet)},
			is:       []error{reconcilers.ErrQuiet}, reason: "they stay quiet",
		},
		"a quiet and a waiting one": {
			handlers: operator.FanOut[*fixture.Resource]{returns(9, waiting), returns(0, quiet)}, want: 9, is: []error{quiet},
			not: []error{reconcilers.ErrRetryAfter}, reason: "the rate limiter is for the quiet one",
		},
		"a waiting and a done one": {
			handlers: operator.FanOut[*fixture.Resource]{returns(9, waiting), returns(5, nil)}, want: 5, is: []error{waiting},
			reason: "the time is that of the earliest",
		},
		"a halting and a waiting one": {
			handlers: operator.FanOut[*fixture.Resource]{
				returns(0, reconcilers.ErrHaltSubReconcilers), returns(9, waiting),
			}, want: 9,
			is: []error{waiting}, not: []error{reconcilers.ErrHaltSubReconcilers}, reason: "not everything is done",
		},
		"a halting one": {
			handlers: operator.FanOut[*fixture.Resource]{returns(0, reconcilers.ErrHaltSubReconcilers), returns(0, nil)},
			is:       []error{reconcilers.ErrHaltSubReconcilers}, reason: "it is not a failure",
		},
		"a terminal one": {
			handlers: operator.FanOut[*fixture.Resource]{returns(0, terminal), returns(0, nil)},
			is:       []error{terminal, reconcile.TerminalError(nil)}, reason: "no handler is retried",
		},
		"a terminal and another": {
			handlers: operator.FanOut[*fixture.Resource]{returns(0, terminal), returns(0, other)}, is: []error{other},
			not: []error{reconcile.TerminalError(nil)}, reason: "the other is to be tried again",
		},
		"a terminal and a waiting one": {
			handlers: operator.FanOut[*fixture.Resource]{returns(0, terminal), returns(9, waiting)}, want: 9,
			is: []error{waiting}, not: []error{reconcile.TerminalError(nil)}, reason: "the other is to be tried again",
		},
		"a terminal and a polling one": {
			handlers: operator.FanOut[*fixture.Resource]{returns(0, terminal), returns(9, nil)}, want: 9,
			is: []error{reconcilers.ErrRetryAfter}, not: []error{reconcile.TerminalError(nil)},
			reason: "the other wants to be called",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := tc.handlers.Reconcile(newWorld(t).context(), version("a", 1, 1))
			equal(t, "result", reconcilers.Result{RequeueAfter: tc.want}, result)
			wantErr(t, err, tc.is...)
			for _, not := range tc.not {
				if errors.Is(err, not) {
					t.Errorf("error: %v, which must not be %v: %s", err, not, tc.reason)
				}
			}
		})
	}
}

// Each handler has its own failures and retries.
func TestFanOut_HandlersAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing, fine := newBench(t), newBench(t)
		failing.RetryPolicy = every(time.Minute)
		failing.errs = []error{errTest}
		handlers := operator.FanOut[*fixture.Resource]{failing.WithEdge, fine.WithEdge}
		ctx := failing.context()
		result, err := handlers.Reconcile(ctx, version("a", 1, 1))
		equal(t, "result", reconcilers.Result{RequeueAfter: time.Minute}, result)
		wantErr(t, err, reconcilers.ErrRetryAfter)
		failing.want(t, "Created a 1")
		fine.want(t, "Created a 1")
		time.Sleep(time.Minute)
		_, err = handlers.Reconcile(ctx, version("a", 1, 1))
		wantErr(t, err)
		failing.want(t, "Created a 1, attempt 1")
		fine.want(t)

		_, err = handlers.Absent(ctx, testRequest)
		wantErr(t, err)
		_, err = operator.FanOut[*fixture.Resource]{returns(0, errTest)}.Absent(ctx, testRequest)
		wantErr(t, err) // the handler is not called for a resource that does not exist
	})
}

func TestFanOut_Validate(t *testing.T) {
	invalid := operator.FanOut[*fixture.Resource]{nil, operator.WatcherReconciler[*fixture.Resource](nil), returns(0, nil)}
	wantText(t, "FanOut must not have a nil handler at index 0", invalid.Validate(t.Context()))
	wantText(t, "FanOut must not have a nil handler at index 0\n"+
		`FanOut must have a valid handler at index 1: WithEdge "Watcher" must have a valid Reconciler: the handler must not be nil`,
		invalid.Validate(validation.WithRecursive(t.Context())))
}
