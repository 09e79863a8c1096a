// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"trueup.dev/reconcilers"
	"trueup.dev/stash"
)

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
