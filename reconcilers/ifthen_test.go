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

func TestIfThen(t *testing.T) {
	type result = reconcilers.Result
	none, minute, second := result{}, result{
		RequeueAfter: time.Minute, Priority: new(3),
	}, result{RequeueAfter: time.Second}
	halt := reconcilers.ErrHaltSubReconcilers
	of := func(answer bool, then, otherwise subReconciler) *ifThen {
		condition := func(ctx context.Context, r *fixture.Resource) bool {
			note(ctx, r, "if")
			ran(r)
			return answer
		}
		return &ifThen{If: condition, Then: then, Else: otherwise}
	}
	inAll(subReconcilerTests{
		"true":               outcome(of(true, noting("then", minute, nil), never(t)), minute, nil, "if", "then"),
		"true, fails":        outcome(of(true, noting("then", minute, errTest), never(t)), minute, errTest, "if", "then"),
		"true, halts":        outcome(of(true, noting("then", minute, halt), never(t)), minute, halt, "if", "then"),
		"true, no else":      outcome(of(true, noting("then", second, nil), nil), second, nil, "if", "then"),
		"false":              outcome(of(false, never(t), noting("else", second, nil)), second, nil, "if", "else"),
		"false, fails":       outcome(of(false, never(t), noting("else", second, errTest)), second, errTest, "if", "else"),
		"false and no else":  outcome(of(false, never(t), nil), none, nil, "if"),
		"true, asks nothing": outcome(of(true, noting("then", none, nil), never(t)), none, nil, "if", "then"),
	}, func(_ string, tc *subReconcilerCase) {
		// The condition receives the resource itself.
		*tc = making(*tc, ran)
	}).Run(t, scheme, fromCase)
}

func TestTryCatch(t *testing.T) {
	type result = reconcilers.Result
	minute, second, hour := result{
		RequeueAfter: time.Minute,
	}, result{RequeueAfter: time.Second}, result{RequeueAfter: time.Hour}
	errCaught, errFinally := errors.New("caught"), errors.New("finally")
	try, fails := noting("try", minute, nil), noting("try", minute, errTest)
	const caught, caughtNothing = "catch 1m0s, failure of the test", "catch 1m0s, <nil>"
	catch := func(res result, err error) func(context.Context, *fixture.Resource, result, error) (result, error) {
		return func(ctx context.Context, r *fixture.Resource, seen result, cause error) (result, error) {
			note(ctx, r, "catch %s, %v", seen.RequeueAfter, cause)
			return res, err
		}
	}
	finally := func(res result, err error) subReconciler { return noting("finally", res, err) }
	idle, high := noting("try", result{}, nil), new(5)
	catchIdle := func(context.Context, *fixture.Resource, result, error) (result, error) { return result{}, errCaught }
	subReconcilerTests{
		// Without Catch and Finally, the outcome of Try is returned.
		"try":       outcome(&tryCatch{Try: try}, minute, nil, "try"),
		"try fails": outcome(&tryCatch{Try: fails}, minute, errTest, "try"),
		// Catch may clear or replace the error. It is always called.
		"catch clears": outcome(&tryCatch{Try: fails, Catch: catch(hour, nil)}, hour, nil, "try", caught),
		"catch replaces": outcome(
			&tryCatch{Try: fails, Catch: catch(second, errCaught)}, second, errCaught, "try", caught,
		),
		"catch without an error": outcome(
			&tryCatch{Try: try, Catch: catch(hour, errCaught)}, hour, errCaught, "try", caughtNothing,
		),
		// Finally always runs and does not change the error. The earliest requeue is used, as in the compatible API.
		"finally":        outcome(&tryCatch{Try: try, Finally: finally(second, nil)}, second, nil, "try", "finally"),
		"finally, later": outcome(&tryCatch{Try: try, Finally: finally(hour, nil)}, minute, nil, "try", "finally"),
		"finally after a failure": outcome(
			&tryCatch{Try: fails, Finally: finally(second, nil)}, second, errTest, "try", "finally",
		),
		"catch and finally": outcome(
			&tryCatch{Try: fails, Catch: catch(hour, nil), Finally: finally(second, nil)},
			second, nil, "try", caught, "finally",
		),
		"catch sooner than finally": outcome(
			&tryCatch{Try: fails, Catch: catch(second, nil), Finally: finally(hour, nil)},
			second, nil, "try", caught, "finally",
		),
		"finally, nothing else": outcome(&tryCatch{Try: try, Finally: finally(result{}, nil)}, minute, nil, "try", "finally"),
		// Try and Catch may request no requeue.
		"finally alone": outcome(&tryCatch{Try: idle, Finally: finally(second, nil)}, second, nil, "try", "finally"),
		"finally alone, after a failure": outcome(
			&tryCatch{Try: idle, Catch: catchIdle, Finally: finally(second, nil)}, second, errCaught, "try", "finally",
		),
		"finally alone, beside a priority": outcome(
			&tryCatch{Try: noting("try", result{Priority: high}, nil), Finally: finally(second, nil)},
			result{RequeueAfter: time.Second, Priority: high}, nil, "try", "finally",
		),
		// An error of Finally replaces the previous error. The results are combined.
		"finally fails": outcome(
			&tryCatch{Try: try, Finally: finally(hour, errFinally)}, minute, errFinally, "try", "finally",
		),
		"try and finally fail": outcome(
			&tryCatch{Try: fails, Finally: finally(second, errFinally)}, second, errFinally, "try", "finally",
		),
		"catch and finally fail": outcome(
			&tryCatch{Try: fails, Catch: catch(hour, errCaught), Finally: finally(second, errFinally)},
			second, errFinally, "try", caught, "finally",
		),
	}.Run(t, scheme, fromCase)
}

func TestOverrideSetup(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	setup := func(context.Context, reconcilers.Manager, *reconcilers.Builder) error { return nil }
	subReconcilerTests{
		"reconciler": outcome(&overrideSetup{Reconciler: returning(minute, errTest)}, minute, errTest),
		"only Setup": outcome(&overrideSetup{Setup: setup}, reconcilers.Result{}, nil),
	}.Run(t, scheme, fromCase)

	// The setup of its reconciler is never called.
	below := &part{syncReconciler: nothing()}
	wantErr(t, nil, (&overrideSetup{Reconciler: below}).SetupWithManager(context.Background(), nil, nil))
	equal(t, "setups of the nested reconciler", 0, below.Setups)
}
