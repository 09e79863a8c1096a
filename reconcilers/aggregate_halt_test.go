// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"trueup.dev/reconcilers"
)

// Halting means the same below each root: the time that the author asks for is kept.
func TestAggregateReconciler_HaltedIsRetriedAfterTheTimeAskedFor(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	for name, tc := range map[string]struct{ asked, want reconcilers.Result }{
		"RequeueAfter": {asked: minute, want: minute},
		"no time":      {want: requeue},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			aggregate := newAggregate(w, func(r *aggregateReconciler) {
				r.Reconciler = collecting(tc.asked, reconcilers.ErrDurable)
			})
			got, err := aggregate.ReconcileManaged(context.Background(), testRequest)
			wantErr(t, nil, err)
			equal(t, "result", tc.want, got)
			equal(t, "writes", nil, w.Writes())
		})
	}
}
