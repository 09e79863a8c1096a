// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"trueup.dev/reconcilers"
)

// A halt has the same effect below each root: the RequeueAfter of the user is kept.
func TestAggregateReconciler_HaltedIsRetriedAfterRequeueAfter(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	for name, tc := range map[string]struct{ given, want reconcilers.Result }{
		"RequeueAfter":    {given: minute, want: minute},
		"no RequeueAfter": {want: requeue},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			aggregate := newAggregate(w, func(r *aggregateReconciler) {
				r.Reconciler = collecting(tc.given, reconcilers.ErrDurable)
			})
			got, err := aggregate.ReconcileManaged(context.Background(), testRequest)
			wantErr(t, nil, err)
			equal(t, "result", tc.want, got)
			equal(t, "writes", nil, w.Writes())
		})
	}
}
