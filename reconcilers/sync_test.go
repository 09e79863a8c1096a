// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

func TestSyncReconciler(t *testing.T) {
	type (
		result = reconcilers.Result
		plain  = func(context.Context, *fixture.Resource) error
		full   = func(context.Context, *fixture.Resource) (result, error)
	)
	var calls []string
	sync := func(err error) plain {
		return func(context.Context, *fixture.Resource) error { calls = append(calls, "sync"); return err }
	}
	syncResult := func(after time.Duration, err error) full {
		return func(context.Context, *fixture.Resource) (result, error) {
			calls = append(calls, "sync")
			return result{RequeueAfter: after}, err
		}
	}
	finalize := func(err error) plain {
		return func(context.Context, *fixture.Resource) error { calls = append(calls, "finalize"); return err }
	}
	finalizeResult := func(after time.Duration, err error) full {
		return func(context.Context, *fixture.Resource) (result, error) {
			calls = append(calls, "finalize")
			return result{RequeueAfter: after}, err
		}
	}
	const deleting = true

	for name, tc := range map[string]struct {
		reason     string
		deleting   bool
		reconciler *syncReconciler
		want       result
		wantErr    error
		wantCalls  []string
		wantLog    []string
	}{
		"sync": {
			reason:     "a resource that lives is synced",
			reconciler: &syncReconciler{Sync: sync(nil), Finalize: finalize(nil)},
			wantCalls:  []string{"sync"},
		},
		"sync fails": {
			reason:     "the error is returned and logged",
			reconciler: &syncReconciler{Sync: sync(errTest)},
			wantErr:    errTest,
			wantCalls:  []string{"sync"},
			wantLog:    []string{"unable to sync"},
		},
		"sync fails quietly": {
			reason:     "a quiet error is returned and not logged",
			reconciler: &syncReconciler{Sync: sync(errQuiet)},
			wantErr:    errQuiet,
			wantCalls:  []string{"sync"},
		},
		"sync with result": {
			reason:     "the result is returned",
			reconciler: &syncReconciler{SyncWithResult: syncResult(time.Minute, nil)},
			want:       result{RequeueAfter: time.Minute},
			wantCalls:  []string{"sync"},
		},
		"sync with result fails": {
			reason:     "the result is returned beside the error",
			reconciler: &syncReconciler{SyncWithResult: syncResult(time.Minute, errTest)},
			want:       result{RequeueAfter: time.Minute},
			wantErr:    errTest,
			wantCalls:  []string{"sync"},
			wantLog:    []string{"unable to sync"},
		},
		"finalize": {
			reason:     "a resource that is being deleted is finalized and not synced",
			deleting:   deleting,
			reconciler: &syncReconciler{Sync: sync(nil), Finalize: finalize(nil)},
			wantCalls:  []string{"finalize"},
		},
		"nothing to finalize": {
			reason:     "finalizing is optional",
			deleting:   deleting,
			reconciler: &syncReconciler{Sync: sync(errTest)},
		},
		"finalize fails": {
			reason:     "the error is returned and logged",
			deleting:   deleting,
			reconciler: &syncReconciler{Sync: sync(nil), Finalize: finalize(errTest)},
			wantErr:    errTest,
			wantCalls:  []string{"finalize"},
			wantLog:    []string{"unable to finalize"},
		},
		"finalize with result": {
			reason:     "the result is returned",
			deleting:   deleting,
			reconciler: &syncReconciler{Sync: sync(nil), FinalizeWithResult: finalizeResult(time.Minute, nil)},
			want:       result{RequeueAfter: time.Minute},
			wantCalls:  []string{"finalize"},
		},
		"finalize with result fails": {
			reason:     "the result is returned beside the error",
			deleting:   deleting,
			reconciler: &syncReconciler{Sync: sync(nil), FinalizeWithResult: finalizeResult(time.Minute, errTest)},
			want:       result{RequeueAfter: time.Minute},
			wantErr:    errTest,
			wantCalls:  []string{"finalize"},
			wantLog:    []string{"unable to finalize"},
		},
		"both, sync is sooner": {
			reason:   "the sooner result wins",
			deleting: deleting,
			reconciler: &syncReconciler{
				SyncDuringFinalization: true,
				SyncWithResult:         syncResult(time.Second, nil), FinalizeWithResult: finalizeResult(time.Minute, nil),
			},
			want:      result{RequeueAfter: time.Second},
			wantCalls: []string{"sync", "finalize"},
		},
		"both, finalize is sooner": {
			reason:   "the sooner result wins",
			deleting: deleting,
			reconciler: &syncReconciler{
				SyncDuringFinalization: true,
				SyncWithResult:         syncResult(time.Minute, nil), FinalizeWithResult: finalizeResult(time.Second, nil),
			},
			want:      result{RequeueAfter: time.Second},
			wantCalls: []string{"sync", "finalize"},
		},
		"both, only sync is there": {
			reason:     "sync is called also when there is nothing to finalize",
			deleting:   deleting,
			reconciler: &syncReconciler{SyncDuringFinalization: true, SyncWithResult: syncResult(time.Second, nil)},
			want:       result{RequeueAfter: time.Second},
			wantCalls:  []string{"sync"},
		},
		"both, sync fails": {
			reason:   "an error from sync skips finalize",
			deleting: deleting,
			reconciler: &syncReconciler{
				SyncDuringFinalization: true, SyncWithResult: syncResult(time.Second, errTest), Finalize: finalize(nil),
			},
			want:      result{RequeueAfter: time.Second},
			wantErr:   errTest,
			wantCalls: []string{"sync"},
			wantLog:   []string{"unable to sync"},
		},
		"both, sync halts": {
			reason:   "a halt skips finalize too",
			deleting: deleting,
			reconciler: &syncReconciler{
				SyncDuringFinalization: true, SyncWithResult: syncResult(time.Second, reconcilers.ErrHaltSubReconcilers), Finalize: finalize(nil),
			},
			want:      result{RequeueAfter: time.Second},
			wantErr:   reconcilers.ErrHaltSubReconcilers,
			wantCalls: []string{"sync"},
		},
		"both, finalize fails": {
			reason:   "the result of both is returned beside the error",
			deleting: deleting,
			reconciler: &syncReconciler{
				SyncDuringFinalization: true, SyncWithResult: syncResult(time.Second, nil), FinalizeWithResult: finalizeResult(time.Minute, errTest),
			},
			want:      result{RequeueAfter: time.Second},
			wantErr:   errTest,
			wantCalls: []string{"sync", "finalize"},
			wantLog:   []string{"unable to finalize"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls = nil
			resource := newResource()
			if tc.deleting {
				terminating(resource)
			}
			log, lines := newLog(0)
			got, err := tc.reconciler.Reconcile(withLog(context.Background(), log), resource)
			wantErr(t, tc.wantErr, err)
			equal(t, "result", tc.want, got)
			equal(t, "calls", tc.wantCalls, calls)
			equal(t, "log", tc.wantLog, lines.messages())
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

func TestSyncReconciler_Validate(t *testing.T) {
	plain := func(context.Context, *fixture.Resource) error { return nil }
	full := func(context.Context, *fixture.Resource) (reconcilers.Result, error) { return reconcilers.Result{}, nil }
	for name, tc := range map[string]struct {
		reconciler *syncReconciler
		want       string
	}{
		"sync":                  {&syncReconciler{Sync: plain}, ""},
		"sync with result":      {&syncReconciler{SyncWithResult: full}, ""},
		"finalize":              {&syncReconciler{Sync: plain, Finalize: plain}, ""},
		"finalize with result":  {&syncReconciler{Sync: plain, FinalizeWithResult: full}, ""},
		"nothing":               {&syncReconciler{}, `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`},
		"named":                 {&syncReconciler{Name: "test"}, `SyncReconciler "test" must implement Sync or SyncWithResult`},
		"both ways to sync":     {&syncReconciler{Sync: plain, SyncWithResult: full}, `SyncReconciler "SyncReconciler" may not implement both Sync and SyncWithResult`},
		"both ways to finalize": {&syncReconciler{Sync: plain, Finalize: plain, FinalizeWithResult: full}, `SyncReconciler "SyncReconciler" may not implement both Finalize and FinalizeWithResult`},
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

func TestDefect09_SyncReconcilerWithoutSetupIsValidated(t *testing.T) {
	wantText(t, `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`,
		(&syncReconciler{}).SetupWithManager(context.Background(), nil, nil))
}
