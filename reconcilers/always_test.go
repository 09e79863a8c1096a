// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestAlways(t *testing.T) {
	type result = reconcilers.Result
	var (
		none   = result{}
		again  = requeue
		minute = result{RequeueAfter: time.Minute}
		second = result{RequeueAfter: time.Second}
		both   = result{Requeue: true, RequeueAfter: time.Minute} //nolint:staticcheck // users' reconcilers may set both
		halt   = reconcilers.ErrHaltSubReconcilers
	)
	parts := always{noting("a", none, errTest), noting("b", none, nil), noting("c", none, halt), noting("d", none, nil)}
	tests := subReconcilerTests{
		"none":       outcome(always{}, none, nil),
		"by value":   outcome(parts, none, errTest, "a", "b", "c", "d"),
		"by pointer": outcome(&parts, none, errTest, "a", "b", "c", "d"),
	}
	for name, tc := range map[string]struct {
		first, second result
		err           error
		want          result
	}{
		"nothing":            {none, none, nil, none},
		"first again":        {again, none, nil, again},
		"second again":       {none, again, nil, again},
		"first after":        {minute, none, nil, minute},
		"second after":       {none, minute, nil, minute},
		"the shorter first":  {second, minute, nil, second},
		"the shorter second": {minute, second, nil, second},
		"again and after":    {again, minute, nil, both},
		"all, failure":       {second, minute, errTest, second},
		"all, halt":          {minute, second, halt, second},
		"again, and failure": {again, minute, errTest, both},
	} {
		tests[name] = outcome(always{returning(tc.first, nil), returning(tc.second, tc.err)}, tc.want, tc.err)
		tests[name+", the other fails"] = outcome(
			always{returning(tc.first, tc.err), returning(tc.second, nil)}, tc.want, tc.err,
		)
	}
	tests.Run(t, scheme, fromCase)
}

func TestAlways_Errors(t *testing.T) {
	errOther, halt := errors.New("other failure of the test"), reconcilers.ErrHaltSubReconcilers
	type errs = []error
	tests := subReconcilerTests{}
	for name, tc := range map[string]struct{ given, want, not errs }{
		"none":                {errs{nil, nil}, nil, nil},
		"one":                 {errs{nil, errTest, nil}, errs{errTest}, errs{reconcilers.ErrQuiet}},
		"two":                 {errs{errTest, errOther}, errs{errTest, errOther}, errs{reconcilers.ErrQuiet}},
		"quiet and not quiet": {errs{errQuiet, errTest}, errs{errTest}, errs{reconcilers.ErrQuiet, errQuiet}},
		"not quiet and quiet": {errs{errTest, errQuiet}, errs{errTest}, errs{reconcilers.ErrQuiet, errQuiet}},
		"quiet only": {
			errs{errQuiet, nil, reconcilers.ErrSkipStatusUpdate}, errs{reconcilers.ErrSkipStatusUpdate}, errs{errQuiet},
		},
		"all quiet":          {errs{errQuiet, halt}, errs{errQuiet, halt}, nil},
		"halt and not quiet": {errs{halt, errTest}, errs{errTest}, errs{halt}},
		"durable":            {errs{nil, reconcilers.ErrDurable}, errs{reconcilers.ErrDurable}, errs{errTest}},
	} {
		r := always{}
		for _, err := range tc.given {
			r = append(r, returning(reconcilers.Result{}, err))
		}
		test := outcome(r, reconcilers.Result{}, errors.Join(tc.want...))
		test.Verify = func(t *testing.T, _ reconcilers.Result, err error) {
			for _, want := range tc.want {
				wantErr(t, want, err)
			}
			for _, not := range tc.not {
				if errors.Is(err, not) {
					t.Errorf("error %v matches %v", err, not)
				}
			}
		}
		tests[name] = test
	}
	tests.Run(t, scheme, fromCase)
}

func TestAlways_StepsAreNamed(t *testing.T) {
	log, lines := newLog(0)
	r := always{
		nothing(), &syncReconciler{Name: "Failing", Sync: func(context.Context, *fixture.Resource) error { return errTest }},
	}
	_, err := r.Reconcile(withLog(context.Background(), log), newResource())
	wantErr(t, errTest, err)
	contains(t, lines.all(), `1/Failing "msg"="unable to sync" "error"="failure of the test"`)
}
