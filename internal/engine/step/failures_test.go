// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/step"
)

var (
	errOther = errors.New("another failure")
	errQuiet = errors.New("quiet")
)

// uncomparable is an error that panics when it is compared with ==.
type uncomparable struct{ errs any }

func (e uncomparable) Error() string { return fmt.Sprint(e.errs) }

// wrapper hides an error that panics when it is compared with == behind a type that Go can compare.
type wrapper struct{ error }

func (e wrapper) Unwrap() error { return e.error }

func fails(err error) work {
	return func(context.Context, *corev1.ConfigMap) (reconcile.Result, error) { return reconcile.Result{}, err }
}

// about returns the work of a step that names the object of its error.
func about(err error, objects ...string) work {
	return func(ctx context.Context, _ *corev1.ConfigMap) (reconcile.Result, error) {
		for _, object := range objects {
			step.About(ctx, err, object)
		}
		return reconcile.Result{}, err
	}
}

// in runs work in nested steps with these names.
func in(names string, do work) work { return nested(strings.Split(names, "."), do) }

// then calls work one after the other, and combines their errors.
func then(combine func(errs []error) error, all ...work) work {
	return func(ctx context.Context, resource *corev1.ConfigMap) (reconcile.Result, error) {
		errs := []error{}
		for _, do := range all {
			_, err := do(ctx, resource)
			errs = append(errs, err)
		}
		return reconcile.Result{}, combine(errs)
	}
}

func join(errs []error) error      { return errors.Join(errs...) }
func first(errs []error) error     { return errs[0] }
func last(errs []error) error      { return errs[len(errs)-1] }
func none([]error) error           { return nil }
func wrap(errs []error) error      { return fmt.Errorf("wrapped: %w", errors.Join(errs...)) }
func aggregate(errs []error) error { return utilerrors.NewAggregate(errs) }
func replace([]error) error        { return errOther }

func TestTrace_Failures(t *testing.T) {
	slice := uncomparable{[]string{"a"}}
	for name, tc := range map[string]struct {
		do   work
		want []step.Failure
	}{
		"no error":       {do: in("root.a", fails(nil))},
		"innermost step": {do: in("root.a.b", fails(errTest)), want: []step.Failure{{Path: "root.a.b", Err: errTest}}},
		"root":           {do: in("root", fails(errTest)), want: []step.Failure{{Path: "root", Err: errTest}}},
		"object": {
			do:   in("root.a", about(errTest, "Secret x")),
			want: []step.Failure{{Path: "root.a", Object: "Secret x", Err: errTest}},
		},
		"first name counts": {
			do: in("root.a", about(errTest, "x", "y")), want: []step.Failure{{Path: "root.a", Object: "x", Err: errTest}},
		},
		"about no error": {do: in("root.a", about(nil, "x"))},
		"caught":         {do: in("root", then(none, in("a", about(errTest, "x"))))},
		"replaced": {
			do: in("root", then(replace, in("a", fails(errTest)))), want: []step.Failure{{Path: "root", Err: errOther}},
		},
		"wrapped": {
			do: in("root", then(wrap, in("a", fails(errTest)))), want: []step.Failure{{Path: "root.a", Err: errTest}},
		},
		"ignored": {do: in("root.a", about(errQuiet, "x"))},
		"ignored, then loud": {
			do: in("root", then(replace, in("a", fails(errQuiet)))), want: []step.Failure{{Path: "root", Err: errOther}},
		},
		"not comparable": {
			do: in("root.a.b", about(slice, "x")), want: []step.Failure{{Path: "root.a.b", Object: "x", Err: slice}},
		},
		"hidden in a wrapper": {
			do: in("root.a.b", fails(wrapper{slice})), want: []step.Failure{{Path: "root.a.b", Err: wrapper{slice}}},
		},
		"joined": {
			do:   in("root", then(join, in("a", fails(errTest)), in("b", fails(nil)), in("c", about(errOther, "x")))),
			want: []step.Failure{{Path: "root.a", Err: errTest}, {Path: "root.c", Object: "x", Err: errOther}},
		},
		"aggregated": {
			do:   in("root", then(aggregate, in("a", fails(errTest)), in("b", fails(errOther)))),
			want: []step.Failure{{Path: "root.a", Err: errTest}, {Path: "root.b", Err: errOther}},
		},
		"first of two": {
			do:   in("root", then(first, in("a", fails(errTest)), in("b", fails(errOther)))),
			want: []step.Failure{{Path: "root.a", Err: errTest}},
		},
		"one value, twice": {
			do:   in("root", then(join, in("a", about(errTest, "x")), in("b", about(errTest, "y")))),
			want: []step.Failure{{Path: "root.a", Object: "x", Err: errTest}, {Path: "root.b", Object: "y", Err: errTest}},
		},
		"one value, caught before": {
			do:   in("root", then(last, in("a", then(none, in("b", about(errTest, "x")))), in("c", fails(errTest)))),
			want: []step.Failure{{Path: "root.c", Err: errTest}},
		},
		"deep and shallow": {
			do:   in("root", then(join, in("a.b", then(join, in("c", fails(errTest)), in("d", fails(nil)))), fails(errOther))),
			want: []step.Failure{{Path: "root.a.b.c", Err: errTest}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			trace := &step.Trace{Ignore: func(err error) bool { return errors.Is(err, errQuiet) }}
			_, err := tc.do(step.Root(t.Context(), trace), resource)
			if diff := cmp.Diff(tc.want, trace.Failures(err), cmpopts.EquateEmpty(), cmp.Comparer(sameError)); diff != "" {
				t.Errorf("unexpected failures (-want +got):\n%s", diff)
			}
		})
	}
}

func sameError(a, b error) bool { return fmt.Sprintf("%T %v", a, a) == fmt.Sprintf("%T %v", b, b) }

func TestTrace_Recorded(t *testing.T) {
	trace := &step.Trace{}
	_, err := in("root", then(join,
		in("a", func(ctx context.Context, _ *corev1.ConfigMap) (reconcile.Result, error) {
			step.Recorded(ctx, errTest)
			return reconcile.Result{}, fmt.Errorf("wrapped: %w", errTest)
		}),
		in("b", fails(errTest)),
	))(step.Root(t.Context(), trace), resource)
	want := []step.Failure{{Path: "root.a", Err: errTest, Recorded: true}, {Path: "root.b", Err: errTest}}
	if diff := cmp.Diff(want, trace.Failures(err), cmp.Comparer(sameError)); diff != "" {
		t.Errorf("unexpected failures (-want +got):\n%s", diff)
	}
}

func TestTrace_OutsideOfARequest(t *testing.T) {
	if _, err := in("a.b", about(errTest, "x"))(t.Context(), resource); !errors.Is(err, errTest) {
		t.Errorf("error: %v", err)
	}
	step.Recorded(t.Context(), errTest)
}

// Steps in goroutines do not interfere: the origin of an error may lack the step or the object, but is never wrong.
func TestTrace_StepsInGoroutines(t *testing.T) {
	const steps = 20
	trace := &step.Trace{}
	errs := make([]error, steps)
	for i := range errs {
		errs[i] = fmt.Errorf("failure %d", i)
	}
	_, err := in("root", func(ctx context.Context, resource *corev1.ConfigMap) (reconcile.Result, error) {
		var done sync.WaitGroup
		for i := range steps {
			done.Go(func() {
				if i%2 == 0 {
					_, _ = in(fmt.Sprint(i), about(errs[i], fmt.Sprint("object ", i)))(ctx, resource)
				} else {
					_, _ = in(fmt.Sprint(i), fails(nil))(ctx, resource)
				}
			})
		}
		done.Wait()
		return reconcile.Result{}, errors.Join(errs...)
	})(step.Root(t.Context(), trace), resource)
	for _, f := range trace.Failures(err) {
		number := strings.TrimPrefix(f.Err.Error(), "failure ")
		whole := step.Failure{Path: "root", Err: f.Err}
		if strings.HasPrefix(f.Err.Error(), "failure ") && !strings.Contains(number, "\n") {
			whole = step.Failure{Path: "root." + number, Object: "object " + number, Err: f.Err}
		}
		if f.Path == "root" {
			whole.Path = "root"
		}
		if f.Object == "" {
			whole.Object = ""
		}
		if diff := cmp.Diff(whole, f, cmp.Comparer(sameError)); diff != "" {
			t.Errorf("unexpected failure (-want +got):\n%s", diff)
		}
	}
}
