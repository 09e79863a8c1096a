// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

func TestWhile(t *testing.T) {
	type result = reconcilers.Result
	const everlasting = 1 << 20
	for name, tc := range map[string]struct {
		reason    string
		condition int // the iterations for which the condition holds
		limit     *int
		failsAt   int
		want      int
		wantErr   error
		exceeded  int
	}{
		"never":                  {reason: "the condition comes first", condition: 0, failsAt: -1, want: 0},
		"some":                   {reason: "it ends with the condition", condition: 3, failsAt: -1, want: 3},
		"default limit":          {reason: "a loop without an end ends", condition: everlasting, failsAt: -1, want: 100, exceeded: 100},
		"up to the limit":        {reason: "the limit comes before the condition: 100 is one too many to find out", condition: 100, failsAt: -1, want: 100, exceeded: 100},
		"just below the limit":   {reason: "the condition is false before the limit is reached", condition: 99, failsAt: -1, want: 99},
		"limit":                  {reason: "the limit can be set", condition: everlasting, limit: new(5), failsAt: -1, want: 5, exceeded: 5},
		"limit that is not met":  {reason: "the limit is not a goal", condition: 3, limit: new(5), failsAt: -1, want: 3},
		"no limit":               {reason: "0 is no limit", condition: 1000, limit: new(0), failsAt: -1, want: 1000},
		"fails":                  {reason: "an error ends the loop", condition: everlasting, failsAt: 2, want: 3, wantErr: errTest},
		"fails in the first one": {reason: "an error ends the loop", condition: everlasting, failsAt: 0, want: 1, wantErr: errTest},
	} {
		t.Run(name, func(t *testing.T) {
			iterations, asked := []int{}, 0
			r := &while{
				MaxIterations: tc.limit,
				Condition: func(ctx context.Context, _ *fixture.Resource) bool {
					equal(t, "iteration in the condition", asked, reconcilers.RetrieveIteration(ctx))
					asked++
					return reconcilers.RetrieveIteration(ctx) < tc.condition
				},
				Reconciler: &syncReconciler{SyncWithResult: func(ctx context.Context, _ *fixture.Resource) (result, error) {
					i := reconcilers.RetrieveIteration(ctx)
					iterations = append(iterations, i)
					if i == tc.failsAt {
						return result{RequeueAfter: time.Second}, errTest
					}
					return result{RequeueAfter: time.Hour, Priority: new(i)}, nil
				}},
			}
			got, err := r.Reconcile(context.Background(), newResource())
			equal(t, "iterations, for "+tc.reason, tc.want, len(iterations))
			for i := range iterations {
				equal(t, "iteration in the reconciler", i, iterations[i])
			}
			if tc.exceeded > 0 {
				exceeded := &reconcilers.ErrMaxIterations{}
				if !errors.As(err, &exceeded) || exceeded.Iterations != tc.exceeded {
					t.Errorf("error = %v", err)
				}
			} else {
				wantErr(t, tc.wantErr, err)
			}
			want := result{}
			switch {
			case tc.wantErr != nil && tc.failsAt == 0:
				want = result{RequeueAfter: time.Second}
			case tc.wantErr != nil:
				want = result{RequeueAfter: time.Second, Priority: new(tc.failsAt - 1)}
			case tc.want > 0:
				want = result{RequeueAfter: time.Hour, Priority: new(tc.want - 1)}
			}
			equal(t, "result", want, got)
		})
	}
	wantText(t, "exceeded max iterations: 7", &reconcilers.ErrMaxIterations{Iterations: 7})
}

func TestWhile_LoopsCanBeReused(t *testing.T) {
	calls := 0
	r := &while{
		Condition:  func(ctx context.Context, _ *fixture.Resource) bool { return reconcilers.RetrieveIteration(ctx) < 2 },
		Reconciler: &syncReconciler{Sync: func(context.Context, *fixture.Resource) error { calls++; return nil }},
	}
	for range 3 {
		_, err := r.Reconcile(context.Background(), newResource())
		wantErr(t, nil, err)
	}
	equal(t, "calls", 6, calls)
}

func TestRetrieveIteration(t *testing.T) {
	equal(t, "iteration outside of a loop", -1, reconcilers.RetrieveIteration(context.Background()))
	type pair struct{ Outer, Inner int }
	var got []pair
	outer := 0
	atMost := func(limit int) func(context.Context, *fixture.Resource) bool {
		return func(ctx context.Context, _ *fixture.Resource) bool { return reconcilers.RetrieveIteration(ctx) < limit }
	}
	note := func(change func(ctx context.Context)) *syncReconciler {
		return &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error { change(ctx); return nil }}
	}
	r := &while{Condition: atMost(2), Reconciler: sequence{
		note(func(ctx context.Context) { outer = reconcilers.RetrieveIteration(ctx) }),
		&while{Condition: atMost(3), Reconciler: note(func(ctx context.Context) {
			got = append(got, pair{outer, reconcilers.RetrieveIteration(ctx)})
		})},
		note(func(ctx context.Context) {
			equal(t, "iteration after the inner loop", outer, reconcilers.RetrieveIteration(ctx))
		}),
	}}
	_, err := r.Reconcile(context.Background(), newResource())
	wantErr(t, nil, err)
	equal(t, "iterations", []pair{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}, got)
}
