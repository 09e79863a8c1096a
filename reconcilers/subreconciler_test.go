// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
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

func TestAggregateResults(t *testing.T) {
	type result = reconcilers.Result
	none, again := result{}, requeue
	minute, second := result{RequeueAfter: time.Minute}, result{RequeueAfter: time.Second}
	for name, tc := range map[string]struct {
		results []result
		want    result
	}{
		"no results":    {nil, none},
		"empty":         {[]result{none, none}, none},
		"one":           {[]result{minute}, minute},
		"shorter":       {[]result{minute, second, none}, second},
		"shorter first": {[]result{second, minute}, second},
		"again":         {[]result{none, again, none}, again},
		//nolint:staticcheck // users may set it
		"again and after": {[]result{again, minute}, result{Requeue: true, RequeueAfter: time.Minute}},
		"highest priority": {
			[]result{{Priority: new(1)}, {Priority: new(7)}, {Priority: new(3)}}, result{Priority: new(7)},
		},
		"negative priority": {[]result{none, {Priority: new(-5)}}, result{Priority: new(-5)}},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, "result", tc.want, reconcilers.AggregateResults(tc.results...))
		})
	}
}

func TestMergeMaps(t *testing.T) {
	first, second := map[string]string{"a": "1", "b": "1"}, map[string]string{"b": "2", "c": "2"}
	equal(t, "merged map", map[string]string{"a": "1", "b": "2", "c": "2"}, reconcilers.MergeMaps(first, nil, second))
	equal(t, "inputs", []map[string]string{{"a": "1", "b": "1"}, {"b": "2", "c": "2"}}, []map[string]string{first, second})
	for _, merged := range []map[string]string{reconcilers.MergeMaps(), reconcilers.MergeMaps(nil, nil)} {
		if merged == nil {
			t.Error("the merged map is nil")
		}
	}
	merged := reconcilers.MergeMaps(first)
	merged["a"] = "changed"
	equal(t, "input after a change of the result", "1", first["a"])
}

func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		err, target error
		want        bool
	}{
		"halt is quiet":         {reconcilers.ErrHaltSubReconcilers, reconcilers.ErrQuiet, true},
		"quiet does not halt":   {reconcilers.ErrQuiet, reconcilers.ErrHaltSubReconcilers, false},
		"durable is quiet":      {reconcilers.ErrDurable, reconcilers.ErrQuiet, true},
		"durable halts":         {reconcilers.ErrDurable, reconcilers.ErrHaltSubReconcilers, true},
		"durable is itself":     {errors.Join(errTest, reconcilers.ErrDurable), reconcilers.ErrDurable, true},
		"halt is not durable":   {reconcilers.ErrHaltSubReconcilers, reconcilers.ErrDurable, false},
		"skipping is not quiet": {reconcilers.ErrSkipStatusUpdate, reconcilers.ErrQuiet, false},
		"only status is quiet":  {reconcilers.OnlyReconcileChildStatus, reconcilers.ErrQuiet, false},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, "match", tc.want, errors.Is(tc.err, tc.target))
		})
	}
	wantText(t, "quiet errors are returned as errors, but not logged or recorded", reconcilers.ErrQuiet)
	wantText(t,
		"stop processing SubReconcilers, without returning an error: quiet errors are returned as errors, but not logged "+
			"or recorded",
		reconcilers.ErrHaltSubReconcilers)
	wantText(t, "skip ResourceReconciler status update for this request", reconcilers.ErrSkipStatusUpdate)
}

func TestStashNames(t *testing.T) {
	ctx := reconcilers.WithStash(t.Context())
	stasher := reconcilers.NewStasher[int]("number")
	equal(t, "key", reconcilers.StashKey("number"), stasher.Key())
	_, err := stasher.RetrieveOrError(ctx)
	wantErr(t, reconcilers.ErrStashValueNotFound, err)
	stasher.Store(ctx, 7)
	equal(t, "value", 7, reconcilers.RetrieveValue(ctx, "number").(int))
	equal(t, "value from package stash", 7, stash.RetrieveValue(ctx, "number").(int))
	reconcilers.StashValue(ctx, "number", "seven")
	_, err = stasher.RetrieveOrError(ctx)
	wantErr(t, reconcilers.ErrStashValueNotAssignable, err)
	equal(t, "cleared value", "seven", reconcilers.ClearValue(ctx, "number").(string))
	equal(t, "has value", false, reconcilers.HasValue(ctx, "number"))
}

func TestIgnoreAllUnexported(t *testing.T) {
	type inner struct{ Exported string }
	type outer struct {
		Exported   string
		unexported string
		nested     inner
		Nested     inner
		Quantity   resource.Quantity
		Map        map[string]string
		ärgerlich  int
	}
	base := outer{
		Exported: "a", unexported: "b", nested: inner{"c"}, Nested: inner{"d"}, Quantity: resource.MustParse("1"),
		Map: map[string]string{"lower": "case"}, ärgerlich: 1,
	}
	for name, tc := range map[string]struct {
		change func(*outer)
		equal  bool
	}{
		"nothing":                          {func(*outer) {}, true},
		"unexported":                       {func(o *outer) { o.unexported = "changed" }, true},
		"unexported, not ASCII":            {func(o *outer) { o.ärgerlich = 2 }, true},
		"exported below unexported":        {func(o *outer) { o.nested.Exported = "changed" }, true},
		"exported":                         {func(o *outer) { o.Exported = "changed" }, false},
		"exported below exported":          {func(o *outer) { o.Nested.Exported = "changed" }, false},
		"a key of a map is not a field":    {func(o *outer) { o.Map = map[string]string{"lower": "changed"} }, false},
		"equal quantity with another text": {func(o *outer) { o.Quantity = resource.MustParse("1000m") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			changed := base
			tc.change(&changed)
			equal(t, "equal", tc.equal, cmp.Equal(base, changed, reconcilers.IgnoreAllUnexported))
		})
	}
}

func TestDeprecatedNames(t *testing.T) {
	if _, ok := any(&reconcilers.ParentReconciler[*fixture.Resource]{}).(*resourceReconciler); !ok {
		t.Error("ParentReconciler is a different type")
	}
	if _, ok := any(&reconcilers.ResourceManager[*corev1.ConfigMap]{}).(*configMaps); !ok {
		t.Error("ResourceManager is a different type")
	}
	if !errors.Is(reconcilers.HaltSubReconcilers, reconcilers.ErrHaltSubReconcilers) {
		t.Error("HaltSubReconcilers is a different error")
	}
	config := newWorld(t).Config
	resource, cast := &fixture.Resource{}, &corev1.Secret{}
	ctx := reconcilers.StashParentConfig(context.Background(), config)
	ctx = reconcilers.StashParentType(ctx, resource)
	ctx = reconcilers.StashCastParentType(ctx, cast)
	parentConfig, err := reconcilers.RetrieveParentConfig(ctx)
	if err != nil || parentConfig != config || reconcilers.RetrieveParentConfigOrDie(ctx) != config ||
		reconcilers.RetrieveOriginalConfigOrDie(ctx) != config {
		t.Error("the parent's config is not the original config")
	}
	if reconcilers.RetrieveParentType(ctx) != resource || reconcilers.RetrieveOriginalResourceType(ctx) != resource {
		t.Error("the parent's type is not the original type")
	}
	if reconcilers.RetrieveCastParentType(ctx) != cast || reconcilers.RetrieveResourceType(ctx) != cast {
		t.Error("the parent's cast type is not the current type")
	}

	w := newWorld(t, newResource())
	resource = newResource()
	wantErr(t, nil, reconcilers.AddParentFinalizer(w.Context(), resource, "test-finalizer"))
	equal(t, "finalizers", []string{"test-finalizer"}, resource.Finalizers)
	wantErr(t, nil, reconcilers.ClearParentFinalizer(w.Context(), resource, "test-finalizer"))
	equal(t, "finalizers", nil, resource.Finalizers)
}
