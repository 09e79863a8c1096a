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

func TestAlways_Results(t *testing.T) {
	type result = reconcilers.Result
	var (
		none   = result{}
		again  = requeue
		minute = result{RequeueAfter: time.Minute}
		second = result{RequeueAfter: time.Second}
		both   = result{Requeue: true, RequeueAfter: time.Minute} //nolint:staticcheck // users' reconcilers may ask for both
	)
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
		"the sooner first":   {second, minute, nil, second},
		"the sooner second":  {minute, second, nil, second},
		"again and after":    {again, minute, nil, both},
		"all, failure":       {second, minute, errTest, second},
		"all, halt":          {minute, second, reconcilers.ErrHaltSubReconcilers, second},
		"again, and failure": {again, minute, errTest, both},
	} {
		t.Run(name, func(t *testing.T) {
			for order, r := range map[string]always{
				"fails last":  {returning(tc.first, nil), returning(tc.second, tc.err)},
				"fails first": {returning(tc.first, tc.err), returning(tc.second, nil)},
			} {
				got, err := r.Reconcile(context.Background(), newResource())
				wantErr(t, tc.err, err)
				equal(t, "result when it "+order, tc.want, got)
			}
		})
	}
}

func TestAlways_Errors(t *testing.T) {
	errOther := errors.New("other failure of the test")
	failing := func(errs ...error) always {
		r := always{}
		for _, err := range errs {
			r = append(r, returning(reconcilers.Result{}, err))
		}
		return r
	}
	for name, tc := range map[string]struct {
		reconciler always
		want, not  []error
	}{
		"none":            {failing(nil, nil), nil, nil},
		"one":             {failing(nil, errTest, nil), []error{errTest}, []error{reconcilers.ErrQuiet}},
		"two":             {failing(errTest, errOther), []error{errTest, errOther}, []error{reconcilers.ErrQuiet}},
		"quiet and loud":  {failing(errQuiet, errTest), []error{errTest}, []error{reconcilers.ErrQuiet, errQuiet}},
		"loud and quiet":  {failing(errTest, errQuiet), []error{errTest}, []error{reconcilers.ErrQuiet, errQuiet}},
		"quiet only":      {failing(errQuiet, nil, reconcilers.ErrSkipStatusUpdate), []error{reconcilers.ErrSkipStatusUpdate}, []error{errQuiet}},
		"all quiet":       {failing(errQuiet, reconcilers.ErrHaltSubReconcilers), []error{errQuiet, reconcilers.ErrHaltSubReconcilers}, nil},
		"a halt and loud": {failing(reconcilers.ErrHaltSubReconcilers, errTest), []error{errTest}, []error{reconcilers.ErrHaltSubReconcilers}},
		"durable":         {failing(nil, reconcilers.ErrDurable), []error{reconcilers.ErrDurable}, []error{errTest}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.reconciler.Reconcile(context.Background(), newResource())
			equal(t, "failed", len(tc.want) > 0, err != nil)
			for _, want := range tc.want {
				wantErr(t, want, err)
			}
			for _, not := range tc.not {
				if errors.Is(err, not) {
					t.Errorf("error %v is %v", err, not)
				}
			}
		})
	}
}

func TestAlways_Order(t *testing.T) {
	var calls []string
	called := func(name string, err error) *syncReconciler {
		return &syncReconciler{Sync: func(context.Context, *fixture.Resource) error {
			calls = append(calls, name)
			return err
		}}
	}
	parts := always{called("a", errTest), called("b", nil), called("c", reconcilers.ErrHaltSubReconcilers), called("d", nil)}
	for name, r := range map[string]subReconciler{"by value": parts, "by pointer": &parts} {
		t.Run(name, func(t *testing.T) {
			calls = nil
			_, err := r.Reconcile(context.Background(), newResource())
			wantErr(t, errTest, err)
			equal(t, "calls", []string{"a", "b", "c", "d"}, calls)
		})
	}
	result, err := always{}.Reconcile(context.Background(), newResource())
	wantErr(t, nil, err)
	equal(t, "result of none", reconcilers.Result{}, result)
}

func TestAlways_StepsAreNamed(t *testing.T) {
	log, lines := newLog(0)
	r := always{nothing(), &syncReconciler{Name: "Failing", Sync: func(context.Context, *fixture.Resource) error { return errTest }}}
	_, err := r.Reconcile(withLog(context.Background(), log), newResource())
	wantErr(t, errTest, err)
	contains(t, lines.all(), `1/Failing "msg"="unable to sync" "error"="failure of the test"`)
}
