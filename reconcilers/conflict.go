// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"trueup.dev/internal/hotloop"
	"trueup.dev/observe"
)

// compareWrites detects fields that this controller and another writer change back and forth, and reports them.
func (r *request) compareWrites(ctx context.Context, root root) {
	this := r.reconciled(root, Result{})
	writes := hotloop.ObjectWrites(&r.journal)
	for _, w := range writes {
		this.Changes = append(this.Changes, w.Hashed())
	}
	for _, conflict := range r.requests.loops.Compare(r.scope.request, this) {
		r.reportConflict(ctx, root, conflict, &writes[conflict.Write])
	}
}

// reportConflict logs and counts a conflict, and records an event.
func (r *request) reportConflict(
	ctx context.Context, root root, conflict hotloop.Conflict, w *hotloop.ObjectWrite,
) {
	cause, text := causeWriter, w.Describe(conflict)
	if conflict.Refused {
		cause = causeRefused
	}
	hotLoops.WithLabelValues(root.name, cause).Inc()
	observe.ReportLoop(ctx, observe.LoopFound{
		Reconciles: conflict.Times, Within: conflict.Within, Repeats: []string{text},
	})
	logr.FromContextOrDiscard(ctx).Info("hot loop: two writers change a field back and forth, reconciles are delayed",
		"object", fmt.Sprintf("%s %s", w.Kind.Kind, w.Key), "field", w.Field(conflict), "times", conflict.Times,
		"within", conflict.Within.Round(time.Second).String(), "conflict", text)
	r.announceLoop(root, reasonFieldConflict, text+"; further reconciles are delayed")
}
