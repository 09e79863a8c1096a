// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

func TestSequence(t *testing.T) {
	type result = reconcilers.Result
	var (
		none   = result{}
		again  = requeue
		minute = result{RequeueAfter: time.Minute}
		second = result{RequeueAfter: time.Second}
		both   = result{Requeue: true, RequeueAfter: time.Minute} //nolint:staticcheck // users' reconcilers may set both
		halt   = reconcilers.ErrHaltSubReconcilers
	)
	of := func(first, second result, err error) sequence {
		return sequence{returning(first, nil), returning(second, err)}
	}
	called := func(name string, err error) *syncReconciler { return noting(name, none, err) }
	subReconcilerTests{
		"nothing":                    outcome(of(none, none, nil), none, nil),
		"first again":                outcome(of(again, none, nil), again, nil),
		"second again":               outcome(of(none, again, nil), again, nil),
		"both again":                 outcome(of(again, again, nil), again, nil),
		"first after":                outcome(of(minute, none, nil), minute, nil),
		"second after":               outcome(of(none, minute, nil), minute, nil),
		"the sooner first":           outcome(of(second, minute, nil), second, nil),
		"the sooner second":          outcome(of(minute, second, nil), second, nil),
		"again and after":            outcome(of(again, minute, nil), both, nil),
		"after and again":            outcome(of(minute, again, nil), both, nil),
		"the failing one's, failure": outcome(of(minute, second, errTest), second, errTest),
		"the failing one's, halt":    outcome(of(second, minute, halt), minute, halt),

		"empty": outcome(sequence{}, none, nil),
		"in order": outcome(
			sequence{called("a", nil), called("b", nil), called("c", nil)}, none, nil, "a", "b", "c",
		),
		"stops at an error": outcome(
			sequence{called("a", nil), called("b", errTest), called("c", nil)}, none, errTest, "a", "b",
		),
		"stops at a halt": outcome(sequence{called("a", halt), called("b", nil)}, none, halt, "a"),
		"by pointer":      outcome(&sequence{called("a", nil), called("b", nil)}, none, nil, "a", "b"),
		"one inside the other": outcome(
			sequence{sequence{called("a", nil), called("b", nil)}, called("c", nil)}, none, nil, "a", "b", "c",
		),
	}.Run(t, scheme, fromCase)
}

func TestSequence_Validate(t *testing.T) {
	invalid := &part{Invalid: errTest}
	recursive := validation.WithRecursive(context.Background())
	for name, tc := range map[string]struct {
		sequence validation.Validator
		ctx      context.Context
		want     string
	}{
		"empty": {sequence{}, recursive, ""},
		"valid": {sequence{&part{}}, recursive, ""},
		"invalid": {
			sequence{&part{}, invalid}, recursive, "Sequence must have a valid Sequence[1]: failure of the test",
		},
		"invalid by pointer": {
			&sequence{&part{}, invalid}, recursive, "Sequence must have a valid Sequence[1]: failure of the test",
		},
		"not recursive": {sequence{invalid}, context.Background(), ""},
		"nil":           {sequence{&part{}, nil}, recursive, "Sequence must not have a nil Sequence[1]"},
		"invalid, nested twice": {
			sequence{sequence{invalid}},
			recursive,
			"Sequence must have a valid Sequence[0]: Sequence must have a valid Sequence[0]: failure of the test",
		},
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

func TestSequence_SetsUpNestedReconcilers(t *testing.T) {
	inSequence, inFinalizer := &part{}, &part{}
	r := sequence{
		inSequence,
		sequence{&reconcilers.WithFinalizer[*fixture.Resource]{Finalizer: "test.example.com/it", Reconciler: inFinalizer}},
	}
	wantErr(t, nil, r.SetupWithManager(context.Background(), nil, nil))
	equal(t, "setups in the sequence", 1, inSequence.Setups)
	equal(t, "setups in the finalizer", 1, inFinalizer.Setups)
}
