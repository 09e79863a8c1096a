// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

func TestAdvice(t *testing.T) {
	type (
		result = reconcilers.Result
		key    struct{}
	)
	minute, second, hour := result{RequeueAfter: time.Minute}, result{RequeueAfter: time.Second}, result{RequeueAfter: time.Hour}
	var calls []string
	before := func(res result, err error) func(context.Context, *fixture.Resource) (context.Context, result, error) {
		return func(context.Context, *fixture.Resource) (context.Context, result, error) {
			calls = append(calls, "before")
			return nil, res, err
		}
	}
	around := func(times int) func(context.Context, *fixture.Resource, subReconciler) (result, error) {
		return func(ctx context.Context, r *fixture.Resource, sub subReconciler) (res result, err error) {
			calls = append(calls, "around")
			for range times {
				res, err = sub.Reconcile(ctx, r)
			}
			return res, err
		}
	}
	after := func(_ context.Context, _ *fixture.Resource, res result, err error) (result, error) {
		calls = append(calls, "after "+res.RequeueAfter.String())
		return res, err
	}
	for name, tc := range map[string]struct {
		reason string
		advice *advice
		sub    error
		want   result
		err    error
		calls  []string
	}{
		"reconciler only": {
			reason: "without advice it is as if it was not there",
			advice: &advice{},
			want:   minute,
			calls:  []string{"reconcile"},
		},
		"reconciler fails": {
			reason: "result and error come back",
			advice: &advice{}, sub: errTest,
			want: minute, err: errTest, calls: []string{"reconcile"},
		},
		"all": {
			reason: "in the order of their names, and After sees the results of Before and Reconciler together",
			advice: &advice{Before: before(second, nil), Around: around(1), After: after},
			want:   second,
			calls:  []string{"before", "around", "reconcile", "after 1s"},
		},
		"before asks for less": {
			reason: "the sooner wins",
			advice: &advice{Before: before(hour, nil)},
			want:   minute,
			calls:  []string{"before", "reconcile"},
		},
		"before fails": {
			reason: "nothing else is called, the result is Before's",
			advice: &advice{Before: before(second, errTest), Around: around(1), After: after},
			want:   second, err: errTest,
			calls: []string{"before"},
		},
		"before halts": {
			reason: "a halt is returned like any other error",
			advice: &advice{Before: before(second, reconcilers.ErrHaltSubReconcilers), After: after},
			want:   second, err: reconcilers.ErrHaltSubReconcilers,
			calls: []string{"before"},
		},
		"around skips": {
			reason: "the reconciler need not be called",
			advice: &advice{Before: before(second, nil), Around: around(0)},
			want:   second,
			calls:  []string{"before", "around"},
		},
		"around repeats": {
			reason: "the reconciler may be called more than once",
			advice: &advice{Around: around(3)},
			want:   minute,
			calls:  []string{"around", "reconcile", "reconcile", "reconcile"},
		},
		"after sees the error": {
			reason: "After is called also after a failure",
			advice: &advice{After: after}, sub: errTest,
			want: minute, err: errTest,
			calls: []string{"reconcile", "after 1m0s"},
		},
		"after clears the error": {
			reason: "what After returns is final",
			advice: &advice{After: func(context.Context, *fixture.Resource, result, error) (result, error) { return hour, nil }}, sub: errTest,
			want:  hour,
			calls: []string{"reconcile"},
		},
		"after makes an error": {
			reason: "what After returns is final",
			advice: &advice{After: func(context.Context, *fixture.Resource, result, error) (result, error) { return result{}, errTest }},
			err:    errTest,
			calls:  []string{"reconcile"},
		},
		"before replaces the context": {
			reason: "what follows gets the context of Before",
			advice: &advice{
				Before: func(ctx context.Context, _ *fixture.Resource) (context.Context, result, error) {
					return context.WithValue(ctx, key{}, "seen by "), result{}, nil
				},
				Around: func(ctx context.Context, r *fixture.Resource, sub subReconciler) (result, error) {
					calls = append(calls, ctx.Value(key{}).(string)+"around")
					return sub.Reconcile(ctx, r)
				},
				After: func(ctx context.Context, _ *fixture.Resource, res result, err error) (result, error) {
					calls = append(calls, ctx.Value(key{}).(string)+"after")
					return res, err
				},
			},
			want:  minute,
			calls: []string{"seen by around", "seen by reconcile", "seen by after"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls = nil
			resource := newResource()
			tc.advice.Reconciler = &syncReconciler{SyncWithResult: func(ctx context.Context, r *fixture.Resource) (result, error) {
				if r != resource {
					t.Error("the resource is another one")
				}
				seen, _ := ctx.Value(key{}).(string)
				calls = append(calls, seen+"reconcile")
				return minute, tc.sub
			}}
			got, err := tc.advice.Reconcile(context.Background(), resource)
			wantErr(t, tc.err, err)
			equal(t, "result, for "+tc.reason, tc.want, got)
			equal(t, "calls, for "+tc.reason, tc.calls, calls)
		})
	}
}

func TestDefect09_AdviceWithoutSetupKeepsWatches(t *testing.T) {
	w := newWorld(t)
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: always{&advice{Reconciler: newChildReconciler(w)}}}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	equal(t, "indexes", []string{"*v1.ConfigMap by trueup.dev/controller-uid"}, events.indexed)
}
