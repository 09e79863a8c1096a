// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
	rtime "trueup.dev/time"
)

// attempt reconciles and tells what became of an error.
func attempt(t *testing.T, ctx context.Context, r subReconciler, resource *fixture.Resource) string {
	t.Helper()
	_, err := r.Reconcile(ctx, resource)
	quiet, skips := errors.Is(err, reconcilers.ErrQuiet), errors.Is(err, reconcilers.ErrSkipStatusUpdate)
	switch {
	case err == nil:
		return "none"
	case quiet && skips:
		return "suppressed"
	case !quiet && !skips:
		return "returned"
	default:
		return "quiet"
	}
}

func TestSuppressTransientErrors(t *testing.T) {
	errDurable := errors.Join(errTest, reconcilers.ErrDurable)
	times := func(n int, what string) []string {
		list := []string{}
		for range n {
			list = append(list, what)
		}
		return list
	}
	repeat := func(n int, err error) []error {
		list := []error{}
		for range n {
			list = append(list, err)
		}
		return list
	}
	for name, tc := range map[string]struct {
		reason    string
		threshold uint8
		errs      []error
		want      []string
	}{
		"success":          {"there is nothing to suppress", 0, repeat(4, nil), times(4, "none")},
		"default":          {"the third error in a row is returned, and all after it", 0, repeat(5, errTest), append(times(2, "suppressed"), times(3, "returned")...)},
		"threshold":        {"the threshold can be set", 5, repeat(6, errTest), append(times(4, "suppressed"), times(2, "returned")...)},
		"threshold of one": {"1 suppresses nothing", 1, repeat(2, errTest), times(2, "returned")},
		"highest":          {"the count does not start again after the highest number there is", 255, repeat(600, errTest), append(times(254, "suppressed"), times(346, "returned")...)},
		"success between": {
			"a success starts the count again", 0,
			[]error{errTest, errTest, nil, errTest, errTest, errTest},
			[]string{"suppressed", "suppressed", "none", "suppressed", "suppressed", "returned"},
		},
		"durable": {
			"a durable error is returned as it is and starts the count again", 0,
			[]error{errDurable, errTest, errTest, errDurable, errTest, errTest, errTest},
			[]string{"quiet", "suppressed", "suppressed", "quiet", "suppressed", "suppressed", "returned"},
		},
		"halt": {
			"a halt is no failure: it starts the count again, and the status is written", 0,
			[]error{errTest, errTest, reconcilers.ErrHaltSubReconcilers, errTest, errTest, errTest},
			[]string{"suppressed", "suppressed", "quiet", "suppressed", "suppressed", "returned"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var next error
			minute := reconcilers.Result{RequeueAfter: time.Minute}
			r := &suppress{Threshold: tc.threshold, Reconciler: &syncReconciler{
				SyncWithResult: func(context.Context, *fixture.Resource) (reconcilers.Result, error) { return minute, next },
			}}
			got, ctx := []string{}, newWorld(t).Context()
			for _, next = range tc.errs {
				got = append(got, attempt(t, ctx, r, newResource()))
			}
			result, _ := r.Reconcile(ctx, newResource())
			equal(t, "result", minute, result)
			equal(t, "errors, for "+tc.reason, tc.want, got)
		})
	}
	t.Run("the cause is not lost", func(t *testing.T) {
		_, err := (&suppress{Reconciler: returning(reconcilers.Result{}, errTest)}).Reconcile(newWorld(t).Context(), newResource())
		wantErr(t, errTest, err)
	})
	t.Run("a durable error is the same error", func(t *testing.T) {
		_, err := (&suppress{Reconciler: returning(reconcilers.Result{}, errDurable)}).Reconcile(newWorld(t).Context(), newResource())
		equal(t, "identical", true, err == errDurable) //nolint:errorlint // it is about identity
	})
}

func TestSuppressTransientErrors_CountsEachResourceAndGeneration(t *testing.T) {
	w := newWorld(t)
	r := &suppress{Reconciler: returning(reconcilers.Result{}, errTest)}
	one, other := newResource(), newResource(func(r *fixture.Resource) { r.UID = "other" })
	changed := newResource(func(r *fixture.Resource) { r.Generation = 2 })
	got := []string{}
	for _, resource := range []*fixture.Resource{one, other, one, other, one, other, changed, changed, changed, one} {
		got = append(got, attempt(t, w.Context(), r, resource))
	}
	equal(t, "errors", []string{
		"suppressed", "suppressed", "suppressed", "suppressed", "returned", "returned",
		"suppressed", "suppressed", "returned", "suppressed",
	}, got)
}

func TestSuppressTransientErrors_LeavesNoTrace(t *testing.T) {
	w := newWorld(t, newResource(settled))
	log, lines := newLog(0)
	failing := sequence{setField(reconcilers.Result{}, nil), returning(reconcilers.Result{RequeueAfter: time.Minute}, nil), &advice{
		Reconciler: nothing(),
		After: func(context.Context, *fixture.Resource, reconcilers.Result, error) (reconcilers.Result, error) {
			return reconcilers.Result{}, errTest
		},
	}}
	r := &resourceReconciler{Config: w.Config, Reconciler: &suppress{Reconciler: failing}}
	for i := range 2 {
		result, err := r.Reconcile(withLog(context.Background(), log), testRequest)
		wantErr(t, nil, err)
		equal(t, fmt.Sprintf("result %d", i), requeue, result)
	}
	equal(t, "API calls and events", []string{"get Resource default/test", "get Resource default/test"}, w.Trace())
	equal(t, "log", "", lines.all())

	_, err := r.Reconcile(withLog(context.Background(), log), testRequest)
	wantErr(t, errTest, err)
	equal(t, "status updates with the third error", 1, w.Count("update Resource/status"))
}

func TestSuppressTransientErrors_ForgetsWhatIsGone(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const list, purging = "list Resource", "purging stale resource counters"
	for name, tc := range map[string]struct {
		reason   string
		after    time.Duration
		exists   bool
		listFail error
		want     string
		lists    int
		log      []string
	}{
		"not yet":  {"nothing is listed within a day", 24*time.Hour - time.Second, false, nil, "returned", 0, nil},
		"gone":     {"the count of a resource that is gone is dropped", 24 * time.Hour, false, nil, "suppressed", 1, []string{purging}},
		"still":    {"the count of a resource that is there is kept", 24 * time.Hour, true, nil, "returned", 1, []string{purging}},
		"no list":  {"without a list nothing is dropped, and nothing fails", 24 * time.Hour, false, errTest, "returned", 1, []string{purging, "purge failed to list resources"}},
		"days ago": {"it is the time since the last purge that counts", 72 * time.Hour, false, nil, "suppressed", 1, []string{purging}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.exists {
				w = newWorld(t, newResource())
			}
			if tc.listFail != nil {
				w.Fail(list, tc.listFail)
			}
			log, lines := newLog(0)
			at := func(now time.Time) context.Context { return withLog(rtime.StashNow(w.Context(), now), log) }
			r := &suppress{Reconciler: &advice{
				Reconciler: nothing(),
				After: func(_ context.Context, resource *fixture.Resource, res reconcilers.Result, _ error) (reconcilers.Result, error) {
					if resource.UID == "healthy" {
						return res, nil
					}
					return res, errTest
				},
			}}
			healthy := newResource(func(r *fixture.Resource) { r.UID = "healthy" })
			for range 2 {
				equal(t, "errors so far", "suppressed", attempt(t, at(start), r, newResource()))
			}
			equal(t, "errors of another", "none", attempt(t, at(start.Add(tc.after)), r, healthy))
			equal(t, "lists, for "+tc.reason, tc.lists, w.Count(list))
			equal(t, "third error, for "+tc.reason, tc.want, attempt(t, at(start.Add(tc.after)), r, newResource()))
			equal(t, "lists, right after", tc.lists, w.Count(list))
			equal(t, "log", tc.log, lines.messages())
		})
	}
	t.Run("without a config", func(t *testing.T) {
		log, lines := newLog(0)
		r := &suppress{Reconciler: returning(reconcilers.Result{}, errTest)}
		for _, day := range []int{0, 1} {
			ctx := withLog(rtime.StashNow(context.Background(), start.AddDate(0, 0, day)), log)
			equal(t, "error", "suppressed", attempt(t, ctx, r, newResource()))
		}
		equal(t, "log", []string{"unable to sync", "unable to sync", purging, "purge failed to list resources"}, lines.messages())
	})
	t.Run("unstructured", func(t *testing.T) {
		w := newWorld(t, newResource())
		kinds := &unstructured.UnstructuredList{}
		kinds.SetGroupVersionKind(fixture.GroupVersion.WithKind("ResourceList"))
		r := &reconcilers.SuppressTransientErrors[*fixture.Resource, *unstructured.UnstructuredList]{
			ListType: kinds, Reconciler: returning(reconcilers.Result{}, errTest),
		}
		got := []string{}
		for _, day := range []int{0, 1, 2} {
			got = append(got, attempt(t, rtime.StashNow(w.Context(), start.AddDate(0, 0, day)), r, newResource()))
		}
		equal(t, "errors", []string{"suppressed", "suppressed", "returned"}, got)
		equal(t, "lists", 2, w.Count(list))
		equal(t, "items left in the list type", 0, len(kinds.Items))
	})
}

func TestDefect05_SuppressTransientErrorsWithManyWorkers(t *testing.T) {
	const workers, passes = 64, 20
	w := newWorld(t)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &suppress{Reconciler: &syncReconciler{Sync: func(_ context.Context, r *fixture.Resource) error {
		if r.Generation%5 == 0 {
			return nil
		}
		return errTest
	}}}
	var done sync.WaitGroup
	for worker := range workers {
		done.Go(func() {
			uid := types.UID(fmt.Sprintf("resource-%d", worker))
			for pass := range passes {
				// Each pass is a day later, so that every one of them purges.
				ctx := rtime.StashNow(w.Context(), start.AddDate(0, 0, pass))
				resource := newResource(func(r *fixture.Resource) { r.UID, r.Generation = uid, int64(pass) })
				_, err := r.Reconcile(ctx, resource)
				if failed := err != nil; failed == (pass%5 == 0) {
					t.Errorf("worker %d, pass %d: error = %v", worker, pass, err)
				}
				if err != nil && !errors.Is(err, reconcilers.ErrQuiet) {
					t.Errorf("worker %d, pass %d: the first error of a generation is not suppressed", worker, pass)
				}
			}
		})
	}
	done.Wait()
	equal(t, "purges", true, w.Count("list Resource") >= 1)
}
