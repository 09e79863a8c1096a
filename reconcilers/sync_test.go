// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestSyncReconciler(t *testing.T) {
	type (
		result = reconcilers.Result
		plain  = func(context.Context, *fixture.Resource) error
		full   = func(context.Context, *fixture.Resource) (result, error)
	)
	none, second, minute := result{}, result{RequeueAfter: time.Second}, result{RequeueAfter: time.Minute}
	withoutResult := func(call full) plain {
		return func(ctx context.Context, r *fixture.Resource) error { _, err := call(ctx, r); return err }
	}
	syncResult := func(res result, err error) full { return noting("sync", res, err).SyncWithResult }
	finalizeResult := func(res result, err error) full { return noting("finalize", res, err).SyncWithResult }
	sync := func(err error) plain { return withoutResult(syncResult(none, err)) }
	finalize := func(err error) plain { return withoutResult(finalizeResult(none, err)) }

	for resource, tests := range map[*fixture.Resource]subReconcilerTests{
		newResource(): {
			// A resource that is not being deleted is synced.
			"sync": logging(outcome(&syncReconciler{Sync: sync(nil), Finalize: finalize(nil)}, none, nil, "sync")),
			// The error is returned and logged.
			"sync fails": logging(outcome(&syncReconciler{Sync: sync(errTest)}, none, errTest, "sync"), "unable to sync"),
			// A quiet error is returned and not logged.
			"sync fails quietly": logging(outcome(&syncReconciler{Sync: sync(errQuiet)}, none, errQuiet, "sync")),
			// The result is returned, also with an error.
			"sync with result": logging(
				outcome(&syncReconciler{SyncWithResult: syncResult(minute, nil)}, minute, nil, "sync"),
			),
			"sync with result fails": logging(
				outcome(&syncReconciler{SyncWithResult: syncResult(minute, errTest)}, minute, errTest, "sync"), "unable to sync",
			),
		},
		newResource(finalizer("test-finalizer"), terminating): {
			// A resource that is being deleted is finalized and not synced.
			"finalize": logging(outcome(&syncReconciler{Sync: sync(nil), Finalize: finalize(nil)}, none, nil, "finalize")),
			// Finalizing is optional.
			"nothing to finalize": logging(outcome(&syncReconciler{Sync: sync(errTest)}, none, nil)),
			// The error is returned and logged.
			"finalize fails": logging(
				outcome(&syncReconciler{Sync: sync(nil), Finalize: finalize(errTest)}, none, errTest, "finalize"),
				"unable to finalize",
			),
			// The result is returned, also with an error.
			"finalize with result": logging(outcome(
				&syncReconciler{Sync: sync(nil), FinalizeWithResult: finalizeResult(minute, nil)}, minute, nil, "finalize",
			)),
			"finalize with result fails": logging(outcome(
				&syncReconciler{Sync: sync(nil), FinalizeWithResult: finalizeResult(minute, errTest)}, minute, errTest, "finalize",
			), "unable to finalize"),
			// The shorter requeue is used.
			"both, sync is sooner": logging(outcome(&syncReconciler{
				SyncDuringFinalization: true, SyncWithResult: syncResult(second, nil),
				FinalizeWithResult: finalizeResult(minute, nil),
			}, second, nil, "sync", "finalize")),
			"both, finalize is sooner": logging(outcome(&syncReconciler{
				SyncDuringFinalization: true, SyncWithResult: syncResult(minute, nil),
				FinalizeWithResult: finalizeResult(second, nil),
			}, second, nil, "sync", "finalize")),
			// Sync is also called without a Finalize function.
			"both, without Finalize": logging(outcome(
				&syncReconciler{SyncDuringFinalization: true, SyncWithResult: syncResult(second, nil)}, second, nil, "sync",
			)),
			// An error from sync skips finalize.
			"both, sync fails": logging(outcome(&syncReconciler{
				SyncDuringFinalization: true, SyncWithResult: syncResult(second, errTest), Finalize: finalize(nil),
			}, second, errTest, "sync"), "unable to sync"),
			// A halt also skips finalize.
			"both, sync halts": logging(outcome(&syncReconciler{
				SyncDuringFinalization: true, SyncWithResult: syncResult(second, reconcilers.ErrHaltSubReconcilers),
				Finalize: finalize(nil),
			}, second, reconcilers.ErrHaltSubReconcilers, "sync")),
			// Both results are combined and returned with the error.
			"both, finalize fails": logging(outcome(&syncReconciler{
				SyncDuringFinalization: true, SyncWithResult: syncResult(second, nil), FinalizeWithResult: finalizeResult(
					minute, errTest,
				),
			}, second, errTest, "sync", "finalize"), "unable to finalize"),
		},
	} {
		inAll(tests, func(_ string, tc *subReconcilerCase) { tc.Resource = resource }).Run(t, scheme, fromCase)
	}
}

func TestSyncReconciler_Validate(t *testing.T) {
	plain := func(context.Context, *fixture.Resource) error { return nil }
	full := func(context.Context, *fixture.Resource) (reconcilers.Result, error) { return reconcilers.Result{}, nil }
	for name, tc := range map[string]struct {
		reconciler *syncReconciler
		want       string
	}{
		"sync":                 {&syncReconciler{Sync: plain}, ""},
		"sync with result":     {&syncReconciler{SyncWithResult: full}, ""},
		"finalize":             {&syncReconciler{Sync: plain, Finalize: plain}, ""},
		"finalize with result": {&syncReconciler{Sync: plain, FinalizeWithResult: full}, ""},
		"nothing":              {&syncReconciler{}, `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`},
		"named": {
			&syncReconciler{Name: "test"}, `SyncReconciler "test" must implement Sync or SyncWithResult`,
		},
		"Sync and SyncWithResult": {
			&syncReconciler{Sync: plain, SyncWithResult: full},
			`SyncReconciler "SyncReconciler" may not implement both Sync and SyncWithResult`,
		},
		"Finalize and FinalizeWithResult": {
			&syncReconciler{Sync: plain, Finalize: plain, FinalizeWithResult: full},
			`SyncReconciler "SyncReconciler" may not implement both Finalize and FinalizeWithResult`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, lines := newLog(1)
			wantText(t, tc.want, tc.reconciler.Validate(withLog(context.Background(), log)))
			equal(t, "log", nil, lines.messages())
		})
	}
}

func TestSyncReconciler_Setup(t *testing.T) {
	r := &syncReconciler{
		Sync: func(context.Context, *fixture.Resource) error { return nil },
		Setup: func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
			return errTest
		},
	}
	wantErr(t, errTest, r.SetupWithManager(context.Background(), nil, nil))
}

func TestSyncReconciler_IsValidatedWithoutSetup(t *testing.T) {
	wantText(t, `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`,
		(&syncReconciler{}).SetupWithManager(context.Background(), nil, nil))
}
