// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// A call that is repeated has the priority in the queue that its reconciler requests, or else the priority of its
// request.
func TestRepeatedCallsKeepTheirPriority(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		after time.Duration // of the retry policy
	}{
		"requested":                    {err: operator.RequeueAfter(time.Minute)},
		"requested with an error":      {err: errors.Join(errTest, operator.RequeueAfter(time.Minute))},
		"the policy has a delay":       {err: errTest, after: time.Minute},
		"the policy has no delay":      {err: errTest},
		"a quiet error":                {err: reconcilers.ErrQuiet},
		"halted, for a time by itself": {err: reconcilers.ErrHaltSubReconcilers},
	} {
		for _, priority := range []*int{nil, new(7)} {
			w := newWorld(t, version("a", 1, 1))
			edge := &operator.WithEdge[*fixture.Resource]{
				RetryPolicy: func(error, int) (bool, time.Duration) { return true, tc.after },
				Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
					SyncWithResult: func(context.Context, *fixture.Resource) (reconcilers.Result, error) {
						return reconcilers.Result{RequeueAfter: time.Minute, Priority: priority}, tc.err
					},
				},
			}
			edge.BelowController()
			result, err := edge.Reconcile(w.context(), w.stored())
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			equal(t, name+": priority", priority, result.Priority)
		}
	}
}
