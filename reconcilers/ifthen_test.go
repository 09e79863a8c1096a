// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

func TestIfThen(t *testing.T) {
	type result = reconcilers.Result
	minute, second := result{RequeueAfter: time.Minute, Priority: new(3)}, result{RequeueAfter: time.Second}
	then := returning(minute, errTest)
	for name, tc := range map[string]struct {
		condition bool
		then      subReconciler
		otherwise subReconciler
		want      result
		err       error
	}{
		"true":               {true, returning(minute, nil), never(t), minute, nil},
		"true, fails":        {true, then, never(t), minute, errTest},
		"true, halts":        {true, returning(minute, reconcilers.ErrHaltSubReconcilers), never(t), minute, reconcilers.ErrHaltSubReconcilers},
		"true, no else":      {true, returning(second, nil), nil, second, nil},
		"false":              {false, never(t), returning(second, nil), second, nil},
		"false, fails":       {false, never(t), returning(second, errTest), second, errTest},
		"false and no else":  {false, never(t), nil, result{}, nil},
		"true, asks nothing": {true, returning(result{}, nil), never(t), result{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			resource := newResource()
			asked := 0
			r := &ifThen{
				If: func(_ context.Context, r *fixture.Resource) bool {
					asked++
					if r != resource {
						t.Error("the resource is another one")
					}
					return tc.condition
				},
				Then: tc.then, Else: tc.otherwise,
			}
			got, err := r.Reconcile(context.Background(), resource)
			wantErr(t, tc.err, err)
			equal(t, "result", tc.want, got)
			equal(t, "times the condition was asked", 1, asked)
		})
	}
}

func TestTryCatch(t *testing.T) {
	type result = reconcilers.Result
	type catch = func(context.Context, *fixture.Resource, result, error) (result, error)
	minute, second, hour := result{RequeueAfter: time.Minute}, result{RequeueAfter: time.Second}, result{RequeueAfter: time.Hour}
	errCaught, errFinally := errorOf("caught"), errorOf("finally")
	returns := func(res result, err error) catch {
		return func(context.Context, *fixture.Resource, result, error) (result, error) { return res, err }
	}
	for name, tc := range map[string]struct {
		reason  string
		try     error
		catch   catch
		finally subReconciler
		want    result
		err     error
	}{
		"try":                      {reason: "the outcome of Try is the outcome", want: minute},
		"try fails":                {reason: "the outcome of Try is the outcome", try: errTest, want: minute, err: errTest},
		"catch clears":             {reason: "Catch may take the error for nothing", try: errTest, catch: returns(hour, nil), want: hour},
		"catch replaces":           {reason: "Catch may take the error for another", try: errTest, catch: returns(second, errCaught), want: second, err: errCaught},
		"catch without an error":   {reason: "Catch is called in any case", catch: returns(hour, errCaught), want: hour, err: errCaught},
		"finally":                  {reason: "the sooner result wins", finally: returning(second, nil), want: second},
		"finally after a failure":  {reason: "Finally runs in any case", try: errTest, finally: returning(second, nil), want: second, err: errTest},
		"finally fails":            {reason: "the error of Finally is the error", finally: returning(hour, errFinally), want: minute, err: errFinally},
		"try and finally fail":     {reason: "the error of Finally is the error", try: errTest, finally: returning(second, errFinally), want: second, err: errFinally},
		"catch and finally":        {reason: "Finally adds to what Catch returns", try: errTest, catch: returns(hour, nil), finally: returning(second, nil), want: second},
		"catch and finally, later": {reason: "Finally adds to what Catch returns", try: errTest, catch: returns(second, errCaught), finally: returning(hour, nil), want: second, err: errCaught},
	} {
		t.Run(name, func(t *testing.T) {
			order := []string{}
			noting := func(name string, sub subReconciler) subReconciler {
				return &advice{Reconciler: sub, Before: func(context.Context, *fixture.Resource) (context.Context, result, error) {
					order = append(order, name)
					return nil, result{}, nil
				}}
			}
			r := &tryCatch{Try: noting("try", returning(minute, tc.try))}
			wantOrder := []string{"try"}
			if tc.catch != nil {
				wantOrder = append(wantOrder, "catch")
				r.Catch = func(ctx context.Context, resource *fixture.Resource, res result, err error) (result, error) {
					order = append(order, "catch")
					equal(t, "result that Catch sees", minute, res)
					wantErr(t, tc.try, err)
					return tc.catch(ctx, resource, res, err)
				}
			}
			if tc.finally != nil {
				wantOrder = append(wantOrder, "finally")
				r.Finally = noting("finally", tc.finally)
			}
			got, err := r.Reconcile(context.Background(), newResource())
			wantErr(t, tc.err, err)
			equal(t, "result, for "+tc.reason, tc.want, got)
			equal(t, "order", wantOrder, order)
		})
	}
}

// errorOf is an error of a test with a text of its own.
type errorOf string

func (e errorOf) Error() string { return string(e) }

func TestOverrideSetup(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	got, err := (&overrideSetup{Reconciler: returning(minute, errTest)}).Reconcile(context.Background(), newResource())
	wantErr(t, errTest, err)
	equal(t, "result", minute, got)

	onlySetup := &overrideSetup{Setup: func(context.Context, reconcilers.Manager, *reconcilers.Builder) error { return nil }}
	got, err = onlySetup.Reconcile(context.Background(), newResource())
	wantErr(t, nil, err)
	equal(t, "result of nothing", reconcilers.Result{}, got)

	// What it hides is not even asked whether it could be set up.
	below := &part{syncReconciler: nothing()}
	wantErr(t, nil, (&overrideSetup{Reconciler: below}).SetupWithManager(context.Background(), nil, nil))
	equal(t, "setups below", 0, below.Setups)
}
