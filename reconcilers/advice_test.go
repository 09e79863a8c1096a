// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

func TestAdvice(t *testing.T) {
	type (
		result = reconcilers.Result
		key    struct{}
	)
	minute, second, hour := result{
		RequeueAfter: time.Minute,
	}, result{RequeueAfter: time.Second}, result{RequeueAfter: time.Hour}
	works, fails := noting("reconcile", minute, nil), noting("reconcile", minute, errTest)
	before := func(res result, err error) func(context.Context, *fixture.Resource) (context.Context, result, error) {
		return func(ctx context.Context, r *fixture.Resource) (context.Context, result, error) {
			note(ctx, r, "before")
			return nil, res, err
		}
	}
	around := func(times int) func(context.Context, *fixture.Resource, subReconciler) (result, error) {
		return func(ctx context.Context, r *fixture.Resource, sub subReconciler) (res result, err error) {
			note(ctx, r, "around")
			for range times {
				res, err = sub.Reconcile(ctx, r)
			}
			return res, err
		}
	}
	after := func(ctx context.Context, r *fixture.Resource, res result, err error) (result, error) {
		note(ctx, r, "after %s", res.RequeueAfter)
		return res, err
	}
	returns := func(res result, err error) func(context.Context, *fixture.Resource, result, error) (result, error) {
		return func(context.Context, *fixture.Resource, result, error) (result, error) { return res, err }
	}
	halt := reconcilers.ErrHaltSubReconcilers
	subReconcilerTests{
		// Without functions, Advice returns the result and error of the reconciler and keeps its changes.
		"reconciler only":    outcome(&advice{Reconciler: works}, minute, nil, "reconcile"),
		"reconciler fails":   outcome(&advice{Reconciler: fails}, minute, errTest, "reconcile"),
		"reconciler changes": making(outcome(&advice{Reconciler: setField(minute, nil)}, minute, nil), ran),
		// The functions run in order. After receives the combined result of Before and Reconciler.
		"all": outcome(
			&advice{Before: before(second, nil), Around: around(1), After: after, Reconciler: works}, second, nil,
			"before", "around", "reconcile", "after 1s",
		),
		// The shorter requeue is used.
		"before asks for less": outcome(
			&advice{Before: before(hour, nil), Reconciler: works}, minute, nil, "before", "reconcile",
		),
		// If Before fails, nothing else is called and the result of Before is returned. A halt is returned like any
		// other error.
		"before fails": outcome(
			&advice{
				Before: before(second, errTest), Around: around(1), After: after, Reconciler: works,
			}, second, errTest, "before",
		),
		"before halts": outcome(
			&advice{Before: before(second, halt), After: after, Reconciler: works}, second, halt, "before",
		),
		// Around may skip the reconciler or call it several times.
		"around skips": outcome(
			&advice{Before: before(second, nil), Around: around(0), Reconciler: works}, second, nil, "before", "around",
		),
		"around repeats": outcome(
			&advice{Around: around(3), Reconciler: works}, minute, nil, "around", "reconcile", "reconcile", "reconcile",
		),
		// After is also called after a failure, and its outcome is final.
		"after sees the error": outcome(
			&advice{After: after, Reconciler: fails}, minute, errTest, "reconcile", "after 1m0s",
		),
		"after clears the error": outcome(&advice{After: returns(hour, nil), Reconciler: fails}, hour, nil, "reconcile"),
		"after makes an error": outcome(
			&advice{After: returns(result{}, errTest), Reconciler: works}, result{}, errTest, "reconcile",
		),
		// The functions that follow receive the context of Before.
		"before replaces the context": outcome(&advice{
			Before: func(ctx context.Context, _ *fixture.Resource) (context.Context, result, error) {
				return context.WithValue(ctx, key{}, "seen by"), result{}, nil
			},
			Around: func(ctx context.Context, r *fixture.Resource, sub subReconciler) (result, error) {
				note(ctx, r, "%s around", ctx.Value(key{}))
				return sub.Reconcile(ctx, r)
			},
			Reconciler: &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
				note(ctx, r, "%s reconcile", ctx.Value(key{}))
				return nil
			}},
			After: func(ctx context.Context, r *fixture.Resource, res result, err error) (result, error) {
				note(ctx, r, "%s after", ctx.Value(key{}))
				return res, err
			},
		}, result{}, nil, "seen by around", "seen by reconcile", "seen by after"),
	}.Run(t, scheme, fromCase)
}

func TestAdvice_SetsUpItsReconcilerWithoutSetup(t *testing.T) {
	configMap := []rtesting.Watch{{Object: &corev1.ConfigMap{}}}
	rtesting.RecordWiring(t, scheme, func(ctx context.Context, mgr reconcilers.Manager, config reconcilers.Config) error {
		r := &resourceReconciler{Config: config, Reconciler: always{&advice{Reconciler: newChildReconciler(nil)}}}
		return r.SetupWithManager(ctx, mgr)
	}).Assert(t, &rtesting.Wiring{
		For: []rtesting.Watch{{Object: &fixture.Resource{}}}, Owns: configMap, Tracks: configMap,
		Indexes: []rtesting.Index{{Object: &corev1.ConfigMap{}, Field: reconcilers.OwnerIndexField}},
	})
}
