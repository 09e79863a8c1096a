// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/step"
)

func TestRequeues(t *testing.T) {
	finished := func(after time.Duration, path ...string) step.Finished {
		return step.Finished{Started: step.Started{Path: path}, Result: reconcile.Result{RequeueAfter: after}}
	}
	type shortest struct {
		Path  string
		After time.Duration
	}
	tests := map[string]struct {
		finished []step.Finished
		want     shortest
	}{
		"no step": {},
		"a step that asks for no requeue, after one that does": {
			[]step.Finished{finished(time.Millisecond, "Root", "a"), finished(0, "Root", "b")},
			shortest{"Root.a", time.Millisecond},
		},
		"the innermost of the steps with the same requeue": {
			[]step.Finished{finished(time.Millisecond, "Root", "a"), finished(time.Millisecond, "Root")},
			shortest{"Root.a", time.Millisecond},
		},
		"the shortest": {
			[]step.Finished{finished(2*time.Millisecond, "Root", "a"), finished(time.Millisecond, "Root", "b")},
			shortest{"Root.b", time.Millisecond},
		},
		"long requeues are not a loop": {finished: []step.Finished{finished(time.Hour, "Root", "a")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &requeues{}
			for _, f := range tc.finished {
				r.StepFinished(context.Background(), f)
			}
			path, after := r.shortest()
			if diff := cmp.Diff(tc.want, shortest{path, after}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
