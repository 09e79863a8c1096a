// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

func TestSequence_Results(t *testing.T) {
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
		"nothing":                    {none, none, nil, none},
		"first again":                {again, none, nil, again},
		"second again":               {none, again, nil, again},
		"both again":                 {again, again, nil, again},
		"first after":                {minute, none, nil, minute},
		"second after":               {none, minute, nil, minute},
		"the sooner first":           {second, minute, nil, second},
		"the sooner second":          {minute, second, nil, second},
		"again and after":            {again, minute, nil, both},
		"after and again":            {minute, again, nil, both},
		"the failing one's, failure": {minute, second, errTest, second},
		"the failing one's, halt":    {second, minute, reconcilers.ErrHaltSubReconcilers, minute},
	} {
		t.Run(name, func(t *testing.T) {
			r := sequence{returning(tc.first, nil), returning(tc.second, tc.err)}
			got, err := r.Reconcile(context.Background(), newResource())
			wantErr(t, tc.err, err)
			equal(t, "result", tc.want, got)
		})
	}
}

func TestSequence_Order(t *testing.T) {
	var calls []string
	called := func(name string, err error) *syncReconciler {
		return &syncReconciler{Sync: func(context.Context, *fixture.Resource) error {
			calls = append(calls, name)
			return err
		}}
	}
	for name, tc := range map[string]struct {
		sequence reconcilers.SubReconciler[*fixture.Resource]
		err      error
		want     []string
	}{
		"empty":                {sequence{}, nil, nil},
		"in order":             {sequence{called("a", nil), called("b", nil), called("c", nil)}, nil, []string{"a", "b", "c"}},
		"stops at an error":    {sequence{called("a", nil), called("b", errTest), called("c", nil)}, errTest, []string{"a", "b"}},
		"stops at a halt":      {sequence{called("a", reconcilers.ErrHaltSubReconcilers), called("b", nil)}, reconcilers.ErrHaltSubReconcilers, []string{"a"}},
		"by pointer":           {&sequence{called("a", nil), called("b", nil)}, nil, []string{"a", "b"}},
		"one inside the other": {sequence{sequence{called("a", nil), called("b", nil)}, called("c", nil)}, nil, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls = nil
			_, err := tc.sequence.Reconcile(context.Background(), newResource())
			wantErr(t, tc.err, err)
			equal(t, "calls", tc.want, calls)
		})
	}
}

func TestSequence_Validate(t *testing.T) {
	invalid := &part{Invalid: errTest}
	recursive := validation.WithRecursive(context.Background())
	for name, tc := range map[string]struct {
		sequence validation.Validator
		ctx      context.Context
		want     string
	}{
		"empty":                 {sequence{}, recursive, ""},
		"valid":                 {sequence{&part{}}, recursive, ""},
		"invalid":               {sequence{&part{}, invalid}, recursive, "Sequence must have a valid Sequence[1]: failure of the test"},
		"invalid by pointer":    {&sequence{&part{}, invalid}, recursive, "Sequence must have a valid Sequence[1]: failure of the test"},
		"invalid, not asked":    {sequence{invalid}, context.Background(), ""},
		"nil":                   {sequence{&part{}, nil}, recursive, "Sequence must not have a nil Sequence[1]"},
		"invalid deeper inside": {sequence{sequence{invalid}}, recursive, "Sequence must have a valid Sequence[0]: Sequence must have a valid Sequence[0]: failure of the test"},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, tc.want, tc.sequence.Validate(tc.ctx))
		})
	}
}

func TestSequence_SetupFails(t *testing.T) {
	last := &part{}
	failing := &syncReconciler{
		Sync:  func(context.Context, *fixture.Resource) error { return nil },
		Setup: func(context.Context, reconcilers.Manager, *reconcilers.Builder) error { return errTest },
	}
	wantErr(t, errTest, sequence{&part{}, failing, last}.SetupWithManager(context.Background(), nil, nil))
	equal(t, "setups after the failure", 0, last.Setups)
}

func TestDefect09_NestedReconcilersAreSetUp(t *testing.T) {
	inSequence, inFinalizer := &part{}, &part{}
	r := sequence{
		inSequence,
		sequence{&reconcilers.WithFinalizer[*fixture.Resource]{Finalizer: "test.example.com/it", Reconciler: inFinalizer}},
	}
	wantErr(t, nil, r.SetupWithManager(context.Background(), nil, nil))
	equal(t, "setups in the sequence", 1, inSequence.Setups)
	equal(t, "setups in the finalizer", 1, inFinalizer.Setups)
}
