// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestWhile(t *testing.T) {
	type result = reconcilers.Result
	const everlasting, nowhere = 1 << 20, -1
	// of returns a loop whose condition is true for some iterations. One of them fails.
	of := func(iterations, failsAt int, limit *int) *while {
		return &while{
			MaxIterations: limit,
			Condition: func(ctx context.Context, r *fixture.Resource) bool {
				note(ctx, r, "condition %d", reconcilers.RetrieveIteration(ctx))
				return reconcilers.RetrieveIteration(ctx) < iterations
			},
			Reconciler: &syncReconciler{SyncWithResult: func(ctx context.Context, r *fixture.Resource) (result, error) {
				i := reconcilers.RetrieveIteration(ctx)
				note(ctx, r, "reconcile %d", i)
				if i == failsAt {
					return result{RequeueAfter: time.Second}, errTest
				}
				return result{RequeueAfter: time.Hour, Priority: new(i)}, nil
			}},
		}
	}
	tests := subReconcilerTests{}
	for name, tc := range map[string]struct {
		loop *while
		ends int // number of iterations without an error
		err  error
	}{
		// The condition is checked before each iteration.
		"never": {of(0, nowhere, nil), 0, nil},
		"some":  {of(3, nowhere, nil), 3, nil},
		// The limit ends an endless loop. It is checked before the condition, so 100 iterations exceed the default
		// limit.
		"default limit":        {of(everlasting, nowhere, nil), 100, &reconcilers.ErrMaxIterations{Iterations: 100}},
		"up to the limit":      {of(100, nowhere, nil), 100, &reconcilers.ErrMaxIterations{Iterations: 100}},
		"just below the limit": {of(99, nowhere, nil), 99, nil},
		// The limit can be changed. A loop may end earlier, and 0 means no limit.
		"limit":                {of(everlasting, nowhere, new(5)), 5, &reconcilers.ErrMaxIterations{Iterations: 5}},
		"limit is not reached": {of(3, nowhere, new(5)), 3, nil},
		"no limit":             {of(1000, nowhere, new(0)), 1000, nil},
		// An error ends the loop.
		"fails":                        {of(everlasting, 2, nil), 2, errTest},
		"fails in the first iteration": {of(everlasting, 0, nil), 0, errTest},
	} {
		want, notes := result{}, []string{}
		for i := range tc.ends {
			want = result{RequeueAfter: time.Hour, Priority: new(i)}
			notes = append(notes, fmt.Sprintf("condition %d", i), fmt.Sprintf("reconcile %d", i))
		}
		exceeded, isExceeded := errors.AsType[*reconcilers.ErrMaxIterations](tc.err)
		if !isExceeded {
			notes = append(notes, fmt.Sprintf("condition %d", tc.ends))
		}
		if errors.Is(tc.err, errTest) {
			want.RequeueAfter = time.Second
			notes = append(notes, fmt.Sprintf("reconcile %d", tc.ends))
		}
		test := outcome(tc.loop, want, tc.err, notes...)
		if isExceeded {
			test.Verify = func(t *testing.T, got result, err error) {
				equal(t, "error", error(exceeded), err)
				equal(t, "result", want, got)
			}
		}
		tests[name] = test
	}
	tests.Run(t, scheme, fromCase)
	wantText(t, "exceeded max iterations: 7", &reconcilers.ErrMaxIterations{Iterations: 7})
}

func TestWhile_LoopsCanBeReused(t *testing.T) {
	test := outcome(&while{
		Condition:  func(ctx context.Context, _ *fixture.Resource) bool { return reconcilers.RetrieveIteration(ctx) < 2 },
		Reconciler: noting("again", reconcilers.Result{}, nil),
	}, reconcilers.Result{}, nil, "again", "again")
	test.AdditionalReconciles = []subReconcilerCase{test, test}
	test.Run(t, scheme, fromCase)
}

func TestRetrieveIteration(t *testing.T) {
	equal(t, "iteration outside of a loop", -1, reconcilers.RetrieveIteration(context.Background()))
	atMost := func(limit int) func(context.Context, *fixture.Resource) bool {
		return func(ctx context.Context, _ *fixture.Resource) bool { return reconcilers.RetrieveIteration(ctx) < limit }
	}
	iteration := func(where string) *syncReconciler {
		return &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
			note(ctx, r, "%s %d", where, reconcilers.RetrieveIteration(ctx))
			return nil
		}}
	}
	subReconcilerTests{
		"one in another": outcome(&while{Condition: atMost(2), Reconciler: sequence{
			iteration("before"), &while{Condition: atMost(3), Reconciler: iteration("within")}, iteration("after"),
		}}, reconcilers.Result{}, nil,
			"before 0", "within 0", "within 1", "within 2", "after 0",
			"before 1", "within 0", "within 1", "within 2", "after 1"),
	}.Run(t, scheme, fromCase)
}
