// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

func TestWhile(t *testing.T) {
	type result = reconcilers.Result
	const everlasting, nowhere = 1 << 20, -1
	// of returns a loop whose condition is true for some iterations. One of them fails.
	of := func(iterations, failsAt int, limit *int) *while {
		return &while{
			MaxIterations: limit,
			Condition: func(ctx context.Context, r *fixture.Resource) bool {
				note(ctx, r, "condition %d", reconcilers.RetrieveIteration(ctx))
				return reconcilers.RetrieveIteration(ctx) < iterations
			},
			Reconciler: &syncReconciler{SyncWithResult: func(ctx context.Context, r *fixture.Resource) (result, error) {
				i := reconcilers.RetrieveIteration(ctx)
				note(ctx, r, "reconcile %d", i)
				if i == failsAt {
					return result{RequeueAfter: time.Second}, errTest
				}
				return result{RequeueAfter: time.Hour, Priority: new(i)}, nil
			}},
		}
	}
	tests := subReconcilerTests{}
	for name, tc := range map[string]struct {
		loop *while
		ends int // number of iterations without an error
		err  error
	}{
		// The condition is checked before each iteration.
		"never": {of(0, nowhere, nil), 0, nil},
		"some":  {of(3, nowhere, nil), 3, nil},
		// The limit ends an endless loop. It is checked before the condition, so 100 iterations exceed the default
		// limit.
		"default limit":        {of(everlasting, nowhere, nil), 100, &reconcilers.ErrMaxIterations{Iterations: 100}},
		"up to the limit":      {of(100, nowhere, nil), 100, &reconcilers.ErrMaxIterations{Iterations: 100}},
		"just below the limit": {of(99, nowhere, nil), 99, nil},
		// The limit can be changed. A loop may end earlier, and 0 means no limit.
		"limit":                {of(everlasting, nowhere, new(5)), 5, &reconcilers.ErrMaxIterations{Iterations: 5}},
		"limit is not reached": {of(3, nowhere, new(5)), 3, nil},
		"no limit":             {of(1000, nowhere, new(0)), 1000, nil},
		// An error ends the loop.
		"fails":                        {of(everlasting, 2, nil), 2, errTest},
		"fails in the first iteration": {of(everlasting, 0, nil), 0, errTest},
	} {
		want, notes := result{}, []string{}
		for i := range tc.ends {
			want = result{RequeueAfter: time.Hour, Priority: new(i)}
			notes = append(notes, fmt.Sprintf("condition %d", i), fmt.Sprintf("reconcile %d", i))
		}
		exceeded, isExceeded := errors.AsType[*reconcilers.ErrMaxIterations](tc.err)
		if !isExceeded {
			notes = append(notes, fmt.Sprintf("condition %d", tc.ends))
		}
		if errors.Is(tc.err, errTest) {
			want.RequeueAfter = time.Second
			notes = append(notes, fmt.Sprintf("reconcile %d", tc.ends))
		}
		test := outcome(tc.loop, want, tc.err, notes...)
		if isExceeded {
			test.Verify = func(t *testing.T, got result, err error) {
				equal(t, "error", error(exceeded), err)
				equal(t, "result", want, got)
			}
		}
		tests[name] = test
	}
	tests.Run(t, scheme, fromCase)
	wantText(t, "exceeded max iterations: 7", &reconcilers.ErrMaxIterations{Iterations: 7})
}

func TestWhile_LoopsCanBeReused(t *testing.T) {
	test := outcome(&while{
		Condition:  func(ctx context.Context, _ *fixture.Resource) bool { return reconcilers.RetrieveIteration(ctx) < 2 },
		Reconciler: noting("again", reconcilers.Result{}, nil),
	}, reconcilers.Result{}, nil, "again", "again")
	test.AdditionalReconciles = []subReconcilerCase{test, test}
	test.Run(t, scheme, fromCase)
}

func TestRetrieveIteration(t *testing.T) {
	equal(t, "iteration outside of a loop", -1, reconcilers.RetrieveIteration(context.Background()))
	atMost := func(limit int) func(context.Context, *fixture.Resource) bool {
		return func(ctx context.Context, _ *fixture.Resource) bool { return reconcilers.RetrieveIteration(ctx) < limit }
	}
	iteration := func(where string) *syncReconciler {
		return &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
			note(ctx, r, "%s %d", where, reconcilers.RetrieveIteration(ctx))
			return nil
		}}
	}
	subReconcilerTests{
		"one in another": outcome(&while{Condition: atMost(2), Reconciler: sequence{
			iteration("before"), &while{Condition: atMost(3), Reconciler: iteration("within")}, iteration("after"),
		}}, reconcilers.Result{}, nil,
			"before 0", "within 0", "within 1", "within 2", "after 0",
			"before 1", "within 0", "within 1", "within 2", "after 1"),
	}.Run(t, scheme, fromCase)
}

type cursor = reconcilers.Cursor[string]

// visit returns a loop that records each cursor and then runs rest.
func visit[I any](where string, list []I, rest ...subReconciler) *reconcilers.ForEach[*fixture.Resource, I] {
	return &reconcilers.ForEach[*fixture.Resource, I]{
		Items: items(list...), Reconciler: append(sequence{look[I](where)}, rest...),
	}
}

func look[I any](where string) *syncReconciler {
	return &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
		at := reconcilers.CursorStasher[I]().RetrieveOrDie(ctx)
		note(ctx, r, "%s %v %d/%d", where, at.Item, at.Index, at.Length)
		return nil
	}}
}

func TestForEach(t *testing.T) {
	type result = reconcilers.Result
	// of returns a loop over three items. One of them fails.
	of := func(failsAt string, err error) *forEach {
		return visit("at", []string{"a", "b", "c"}, &syncReconciler{SyncWithResult: func(
			ctx context.Context, _ *fixture.Resource,
		) (result, error) {
			at := reconcilers.CursorStasher[string]().RetrieveOrDie(ctx)
			if at.Item == failsAt {
				return result{RequeueAfter: time.Second}, err
			}
			return result{RequeueAfter: time.Minute * time.Duration(1+at.Index), Priority: new(at.Index)}, nil
		}})
	}
	none, halt := result{}, reconcilers.ErrHaltSubReconcilers
	noItems := func(context.Context, *fixture.Resource) ([]string, error) { return []string{"a"}, errTest }
	// withCursor returns the case with a check of the cursor after the loop. nil means no cursor.
	withCursor := func(last any, tc subReconcilerCase) subReconcilerCase {
		tc.ExpectStashedValues = map[reconcilers.StashKey]any{reconcilers.CursorStasher[string]().Key(): last}
		return tc
	}
	subReconcilerTests{
		// Items are visited in order, and their results are combined.
		"all": withCursor(cursor{Index: 2, Length: 3, Item: "c"}, outcome(
			of("", nil), result{RequeueAfter: time.Minute, Priority: new(2)}, nil, "at a 0/3", "at b 1/3", "at c 2/3",
		)),
		// An empty list is valid. If Items fails, no item is visited.
		"none":     withCursor(nil, outcome(visit[string]("at", nil), none, nil)),
		"no items": withCursor(nil, outcome(&forEach{Items: noItems, Reconciler: never(t)}, none, errTest)),
		// An error or a halt ends the loop. The result combines the previous items, and the time of the halt.
		"fails": withCursor(cursor{Index: 1, Length: 3, Item: "b"}, outcome(
			of("b", errTest), result{RequeueAfter: time.Minute, Priority: new(0)}, errTest, "at a 0/3", "at b 1/3",
		)),
		"halts": withCursor(cursor{Index: 2, Length: 3, Item: "c"}, outcome(
			of("c", halt), result{RequeueAfter: time.Second, Priority: new(1)}, halt, "at a 0/3", "at b 1/3", "at c 2/3",
		)),
		// The first item fails, so the result is empty.
		"fails at once": withCursor(
			cursor{Index: 0, Length: 3, Item: "a"}, outcome(of("a", errTest), none, errTest, "at a 0/3"),
		),
		"one after the other": withCursor(cursor{Index: 0, Length: 1, Item: "c"}, outcome(
			sequence{
				visit("first", []string{"a", "b"}), visit("second", []string{"c"}),
			}, none, nil, "first a 0/2", "first b 1/2", "second c 0/1",
		)),
	}.Run(t, scheme, fromCase)
}

func TestForEach_Nested(t *testing.T) {
	none, after := reconcilers.Result{}, look[string]("after")
	failing := &tryCatch{
		Try: &forEach{Items: items("x", "y"), Reconciler: returning(none, errTest)},
		Catch: func(context.Context, *fixture.Resource, reconcilers.Result, error) (reconcilers.Result, error) {
			return none, nil
		},
	}
	core, events := corev1.EventSeries{Count: 1}, eventsv1.EventSeries{Count: 2}
	subReconcilerTests{
		"of the same type": outcome(
			visit("outer", []string{"a", "b"}, visit("inner", []string{"1", "2", "3"}), after, failing, after), none, nil,
			"outer a 0/2", "inner 1 0/3", "inner 2 1/3", "inner 3 2/3", "after a 0/2", "after a 0/2",
			"outer b 1/2", "inner 1 0/3", "inner 2 1/3", "inner 3 2/3", "after b 1/2", "after b 1/2",
		),
		"of interfaces": outcome(
			visit("any", []any{"text", 2, nil}, visit("stringer", []fmt.Stringer{time.Minute})), none, nil,
			"any text 0/3", "stringer 1m0s 0/1", "any 2 1/3", "stringer 1m0s 0/1", "any <nil> 2/3", "stringer 1m0s 0/1",
		),
		"of types that have the same name": outcome(
			visit(
				"core", []corev1.EventSeries{core},
				visit("events", []eventsv1.EventSeries{events}, look[corev1.EventSeries]("core")),
			), none, nil,
			fmt.Sprintf("core %v 0/1", core), fmt.Sprintf("events %v 0/1", events), fmt.Sprintf("core %v 0/1", core),
		),
	}.Run(t, scheme, fromCase)
}

func TestCursorStasher_KeysAreUnique(t *testing.T) {
	type local struct{}
	keys := map[reconcilers.StashKey]string{}
	add := func(what string, key reconcilers.StashKey) {
		if other, ok := keys[key]; ok {
			t.Errorf("%s and %s share the key %s", what, other, key)
		}
		keys[key] = what
	}
	// Both types are named v1.Event, in different packages.
	add("core event", reconcilers.CursorStasher[corev1.Event]().Key())
	add("event", reconcilers.CursorStasher[eventsv1.Event]().Key())
	add("pointer to core event", reconcilers.CursorStasher[*corev1.Event]().Key())
	add("pointer to event", reconcilers.CursorStasher[*eventsv1.Event]().Key())
	add("core events", reconcilers.CursorStasher[[]corev1.Event]().Key())
	add("events", reconcilers.CursorStasher[[]eventsv1.Event]().Key())
	add("two core events", reconcilers.CursorStasher[[2]corev1.Event]().Key())
	add("two events", reconcilers.CursorStasher[[2]eventsv1.Event]().Key())
	add("three events", reconcilers.CursorStasher[[3]eventsv1.Event]().Key())
	add("core events by name", reconcilers.CursorStasher[map[string]corev1.Event]().Key())
	add("events by name", reconcilers.CursorStasher[map[string]eventsv1.Event]().Key())
	add("names by event", reconcilers.CursorStasher[map[*eventsv1.Event]string]().Key())
	add("deployment", reconcilers.CursorStasher[appsv1.Deployment]().Key())
	add("string", reconcilers.CursorStasher[string]().Key())
	add("named string", reconcilers.CursorStasher[corev1.PodPhase]().Key())
	add("any", reconcilers.CursorStasher[any]().Key())
	add("error", reconcilers.CursorStasher[error]().Key())
	add("object", reconcilers.CursorStasher[client.Object]().Key())
	add("local", reconcilers.CursorStasher[local]().Key())
	add("function", reconcilers.CursorStasher[func() string]().Key())
}
