// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"trueup.dev/internal/engine/hotloop"
	"trueup.dev/observe"
)

// compareWrites detects fields that this controller and another writer change back and forth, and objects that are
// created and deleted in turns. It reports them.
func (r *request) compareWrites(ctx context.Context, root root) {
	this := r.reconciled(root, Result{})
	writes := hotloop.ObjectWrites(&r.journal)
	for _, w := range writes {
		this.Changes = append(this.Changes, w.Hashed())
	}
	conflicts, remade := r.requests.loops.Compare(r.scope.request, this)
	for _, conflict := range conflicts {
		r.reportConflict(ctx, root, conflict, &writes[conflict.Write])
	}
	for _, object := range remade {
		r.reportRemade(ctx, root, object)
	}
}

// reportRemade logs and counts an object that is created and deleted in turns, and records an event.
func (r *request) reportRemade(ctx context.Context, root root, object hotloop.Remade) {
	cause, text := observe.LoopSelf, object.Describe()
	if object.CreatedBy == "" || object.DeletedBy == "" {
		cause = observe.LoopWriter
	}
	root.reportLoop(ctx, observe.LoopFound{
		Cause: cause, Reconciles: object.Times, Within: object.Within, Repeats: []string{text},
	})
	logr.FromContextOrDiscard(ctx).Info("hot loop: an object is created and deleted in turns, reconciles are delayed",
		"object", object.Object(), "times", object.Times, "within", object.Within.Round(time.Second).String(),
		"repeats", text)
	r.announceLoop(root, reasonHotLoop, text+"; further reconciles are delayed")
}

// reportConflict logs and counts a conflict, and records an event.
func (r *request) reportConflict(
	ctx context.Context, root root, conflict hotloop.Conflict, w *hotloop.ObjectWrite,
) {
	cause, text := observe.LoopWriter, w.Describe(conflict)
	if conflict.Refused {
		cause = observe.LoopRefused
	}
	root.reportLoop(ctx, observe.LoopFound{
		Cause: cause, Reconciles: conflict.Times, Within: conflict.Within, Repeats: []string{text},
	})
	logr.FromContextOrDiscard(ctx).Info("hot loop: two writers change a field back and forth, reconciles are delayed",
		"object", fmt.Sprintf("%s %s", w.Kind.Kind, w.Key), "field", w.Field(conflict), "times", conflict.Times,
		"within", conflict.Within.Round(time.Second).String(), "conflict", text)
	r.announceLoop(root, reasonFieldConflict, text+"; further reconciles are delayed")
}
