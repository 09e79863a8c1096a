// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// loops are the reconcilers that run several steps. Each of them runs step repeatedly.
var loops = map[string]func(step subReconciler) subReconciler{
	"Sequence": func(step subReconciler) subReconciler { return sequence{step, step, step, step} },
	"Always":   func(step subReconciler) subReconciler { return always{step, step, step, step} },
	"While":    func(step subReconciler) subReconciler { return &while{Condition: isTrue, Reconciler: step} },
	"ForEach": func(step subReconciler) subReconciler {
		return &forEach{Items: items("a", "b", "c", "d"), Reconciler: step}
	},
}

func TestInterrupted(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	for name, loop := range loops {
		run := func(t *testing.T, ctx context.Context, second func()) (calls int, err error) {
			t.Helper()
			result, err := loop(&syncReconciler{SyncWithResult: func(
				context.Context, *fixture.Resource,
			) (reconcilers.Result, error) {
				calls++
				if calls == 2 {
					second()
				}
				return minute, nil
			}}).Reconcile(reconcilers.WithStash(ctx), newResource())
			if calls > 0 {
				equal(t, "result", minute, result)
			}
			return calls, err
		}
		t.Run(name+", canceled between two steps", func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			calls, err := run(t, ctx, func() { cancel(errTest) })
			equal(t, "calls", 2, calls)
			for _, want := range []error{errTest, reconcilers.ErrQuiet, reconcilers.ErrSkipStatusUpdate} {
				wantErr(t, want, err)
			}
			if errors.Is(err, reconcilers.ErrHaltSubReconcilers) {
				t.Error("a shutdown must not halt, because the generation would be marked as observed")
			}
		})
		t.Run(name+", deadline exceeded between two steps", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			calls, err := run(t, ctx, func() { <-ctx.Done() })
			equal(t, "ran after the deadline", false, calls > 2)
			wantErr(t, context.DeadlineExceeded, err)
			if errors.Is(err, reconcilers.ErrQuiet) {
				t.Errorf("an exceeded deadline must not be quiet, got %v", err)
			}
		})
		t.Run(name+", canceled before the first step", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			calls, err := run(t, ctx, func() {})
			equal(t, "calls", 0, calls)
			wantErr(t, context.Canceled, err)
			wantErr(t, reconcilers.ErrQuiet, err)
		})
		if name == "While" {
			continue // it has no last step
		}
		t.Run(name+", canceled in the last step", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			_, err := loop(&syncReconciler{Sync: func(context.Context, *fixture.Resource) error {
				if calls++; calls == 4 {
					cancel()
				}
				return nil
			}}).Reconcile(reconcilers.WithStash(ctx), newResource())
			wantErr(t, nil, err)
		})
	}
}

func TestInterrupted_ShutdownIsNotReported(t *testing.T) {
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			log, lines := newLog(0)
			ctx, cancel := context.WithCancel(withLog(context.Background(), log))
			defer cancel()
			calls := 0
			r := &resourceReconciler{Config: w.Config, Reconciler: loop(&syncReconciler{Sync: func(
				_ context.Context, r *fixture.Resource,
			) error {
				calls++
				r.Status.Fields = map[string]string{"half": "done"}
				cancel()
				return nil
			}})}
			result, err := r.Reconcile(ctx, testRequest)
			wantErr(t, nil, err)
			equal(t, "result", requeue, result)
			equal(t, "calls", 1, calls)
			equal(t, "API calls and events", []string{"get Resource default/test"}, w.Trace())
			equal(t, "log", "", lines.all())
		})
	}
}

func TestInterrupted_DoesNotSilenceEarlierErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := always{returning(reconcilers.Result{}, errTest), &syncReconciler{Sync: func(
		context.Context, *fixture.Resource,
	) error {
		cancel()
		return nil
	}}, never(t)}
	_, err := r.Reconcile(ctx, newResource())
	wantErr(t, errTest, err)
	if errors.Is(err, reconcilers.ErrQuiet) {
		t.Errorf("an error is silenced by a shutdown: %v", err)
	}
}

func TestInterrupted_ByUserCode(t *testing.T) {
	w := newWorld(t, newResource(settled))
	r := &resourceReconciler{Config: w.Config, Reconciler: &reconcilers.Advice[*fixture.Resource]{
		// The mistake: the context has already ended when Before returns it.
		Before: func(ctx context.Context, _ *fixture.Resource) (context.Context, reconcilers.Result, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return ctx, reconcilers.Result{}, nil
		},
		Reconciler: sequence{returning(reconcilers.Result{}, nil)},
	}}
	_, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, context.Canceled, err)
}
