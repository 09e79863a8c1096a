// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

var resources = schema.GroupResource{Resource: "resources"}

// opinionatedBench is a controller with one opinionated handler whose calls are recorded.
type opinionatedBench struct {
	*bench
	*operator.Opinionated[*fixture.Resource]
	controller *operator.Controller[*fixture.Resource]
}

func newOpinionated(t testing.TB, given ...client.Object) *opinionatedBench {
	b := &opinionatedBench{bench: newBench(t, given...)}
	b.Opinionated = operator.NewOpinionated[*fixture.Resource](testFinalizer, b.reconciler())
	b.controller = &operator.Controller[*fixture.Resource]{Handlers: []sub{b.Opinionated}, Config: b.config}
	return b
}

func (b *opinionatedBench) request() (reconcilers.Result, error) {
	return b.controller.Reconcile(b.t.Context(), testRequest)
}

func TestOpinionated_Mark(t *testing.T) {
	const wip, former = testFinalizer + "-wip", testFinalizer + "-former"
	for name, tc := range map[string]struct {
		given *fixture.Resource
		with  func(*opinionatedBench)
		want  []string
		marks []string
	}{
		"new": {given: version("a", 1, 1), want: []string{"Created a 1"}, marks: []string{testFinalizer}},
		"observed": {
			given: version("a", 1, 1, with(testFinalizer), observed), want: []string{"Resynced a 1"},
			marks: []string{testFinalizer},
		},
		"observed, and the finalizer is off": {
			given: version("a", 1, 1, observed), want: []string{"Resynced a 1"}, marks: []string{testFinalizer},
		},
		"not observed, although there is a finalizer": {
			given: version("a", 1, 1, with(testFinalizer)), want: []string{"Created a 1"}, marks: []string{testFinalizer},
		},
		"observed by another controller": {
			given: version("a", 1, 1, observed), with: func(b *opinionatedBench) { b.controller.SkipStatusUpdate = true },
			want: []string{"Created a 1"}, marks: []string{testFinalizer},
		},
		"kept, and observed by another controller": {
			given: version("a", 1, 1, with(testFinalizer)), with: func(b *opinionatedBench) {
				b.controller.SkipStatusUpdate = true
			},
			want: []string{"Resynced a 1"}, marks: []string{testFinalizer},
		},
		"in progress": {
			given: version("a", 1, 1, with(wip), observed), with: func(b *opinionatedBench) { b.InProgressFinalizer = wip },
			want: []string{"Created a 1"}, marks: []string{testFinalizer},
		},
		"no more in progress": {
			given: version("a", 1, 1, with(testFinalizer)), with: func(b *opinionatedBench) { b.InProgressFinalizer = wip },
			want: []string{"Resynced a 1"}, marks: []string{testFinalizer},
		},
		"kept by a former name": {
			given: version("a", 1, 1, with("example.com/other", former)), with: func(b *opinionatedBench) {
				b.InProgressFinalizer, b.Aliases = wip, []string{former}
			},
			want: []string{"Resynced a 1"}, marks: []string{"example.com/other", testFinalizer},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newOpinionated(t, tc.given)
			if tc.with != nil {
				tc.with(b)
			}
			if _, err := b.request(); err != nil {
				t.Fatal(err)
			}
			b.want(t, tc.want...)
			stored := b.stored()
			equal(t, "finalizers", tc.marks, stored.Finalizers)
			wantGeneration := int64(1)
			if b.controller.SkipStatusUpdate {
				wantGeneration = tc.given.Status.ObservedGeneration
			}
			equal(t, "observed generation", wantGeneration, stored.Status.ObservedGeneration)
		})
	}
}

// A conflict with another client is not a failure. The request is retried.
func TestOpinionated_Conflicts(t *testing.T) {
	for name, refusal := range map[string]error{
		"conflict": apierrs.NewConflict(resources, "test", nil), "another object": apierrs.NewInvalid(
			schema.GroupKind{}, "test", nil,
		),
		"not found": apierrs.NewNotFound(resources, "test"), "failure": errTest,
	} {
		t.Run(name, func(t *testing.T) {
			kept := with(testFinalizer, "example.com/other")
			for what, given := range map[string]*fixture.Resource{
				"add": version("a", 1, 1), "clear": version("a", 2, 1, kept, deleting),
			} {
				if what == "clear" && name == "not found" {
					continue // no work is left
				}
				b := newOpinionated(t, given)
				b.fail = func(string) error { return refusal }
				_, err := b.Reconcile(b.context(), given)
				if name == "failure" {
					wantErr(t, err, errTest)
				} else {
					wantErr(t, err, reconcilers.ErrQuiet, refusal)
				}
				if what == "add" {
					b.want(t)
					b.fail = nil
					_, err := b.Reconcile(b.context(), given)
					wantErr(t, err)
					b.want(t, "Created a 1")
					continue
				}
				b.want(t, "Deleted a 2")
				b.fail = nil
				_, err = b.Reconcile(b.context(), given)
				wantErr(t, err)
				b.want(t) // its deletion was handled
				equal(t, "finalizers", []string{"example.com/other"}, b.stored().Finalizers)
			}
		})
	}
}

func TestOpinionated_InProgressFinalizerThatCannotBeReplaced(t *testing.T) {
	b := newOpinionated(t, version("a", 1, 1))
	b.InProgressFinalizer = testFinalizer + "-wip"
	b.fail = func(line string) error {
		if strings.Contains(line, `["`+testFinalizer+`"]`) {
			return apierrs.NewConflict(resources, "test", nil)
		}
		return nil
	}
	_, err := b.request()
	wantErr(t, err)
	b.want(t, "Created a 1")
	equal(t, "finalizers", []string{testFinalizer + "-wip"}, b.stored().Finalizers)
	b.fail = nil
	_, err = b.request()
	wantErr(t, err)
	b.want(t) // it was called already
	equal(t, "finalizers", []string{testFinalizer}, b.stored().Finalizers)
}

func TestOpinionated_ObservedGenerationThatCannotBeWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal, want error
	}{
		"failure":        {errTest, errTest},
		"not found":      {apierrs.NewNotFound(resources, "test"), nil},
		"another object": {apierrs.NewInvalid(schema.GroupKind{}, "test", nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newOpinionated(t, version("a", 1, 1))
			b.fail = func(line string) error {
				if strings.HasPrefix(line, "patch status") {
					return tc.refusal
				}
				return nil
			}
			_, err := b.request()
			if tc.want == nil {
				wantErr(t, err)
				return
			}
			wantErr(t, err, tc.want)
			b.fail = nil
			_, err = b.request()
			wantErr(t, err)
			b.want(t, "Created a 1")
			equal(t, "observed generation", int64(1), b.stored().Status.ObservedGeneration)
		})
	}
}

func TestOpinionated_Validate(t *testing.T) {
	valid := func() *operator.Opinionated[*fixture.Resource] {
		return operator.OpinionatedWatcher(
			testFinalizer, operator.TypedWatcher[*fixture.Resource](watcher[*fixture.Resource]{}),
		)
	}
	for name, tc := range map[string]struct {
		change func(*operator.Opinionated[*fixture.Resource])
		want   []string
	}{
		"valid": {change: func(*operator.Opinionated[*fixture.Resource]) {}},
		"no name": {
			func(r *operator.Opinionated[*fixture.Resource]) { r.Finalizer = "" },
			[]string{`"Opinionated" must have a qualified name`, "in Finalizer", "non-empty"},
		},
		"no domain": {
			func(r *operator.Opinionated[*fixture.Resource]) {
				r.Finalizer, r.InProgressFinalizer = "operator.v1.things.group", "app-wip"
			},
			nil,
		},
		"reserved": {
			func(r *operator.Opinionated[*fixture.Resource]) { r.Finalizer = "foregroundDeletion" }, []string{
				"in Finalizer", `got "foregroundDeletion"`, "it is reserved by Kubernetes",
			},
		},
		"everything": {
			func(r *operator.Opinionated[*fixture.Resource]) {
				*r = operator.Opinionated[*fixture.Resource]{
					Name: "mine", Finalizer: "a b", InProgressFinalizer: "orphan", Aliases: []string{"", "a b"},
				}
			},
			[]string{
				`Opinionated "mine" must define Handler`, `in Finalizer, got "a b"`, `in InProgressFinalizer, got "orphan"`,
				`must not have an empty name in Aliases`, "must have different names in Finalizer, Aliases and InProgressFinalizer",
			},
		},
		"invalid handler": {
			func(r *operator.Opinionated[*fixture.Resource]) {
				r.Handler = &operator.WithEdge[*fixture.Resource]{}
			}, []string{`WithEdge "WithEdge" must define Reconciler`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := valid()
			tc.change(r)
			err := r.Validate(validation.WithRecursive(t.Context()))
			if len(tc.want) == 0 {
				wantErr(t, err)
				return
			}
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error: %v\nlacks %q", err, want)
				}
			}
			// A controller reports the problem, too, and does not panic.
			c := &operator.Controller[*fixture.Resource]{Handlers: []sub{r}}
			if err := c.Validate(validation.WithRecursive(t.Context())); err == nil ||
				!strings.Contains(err.Error(), tc.want[0]) {
				t.Errorf("error of the controller: %v\nlacks %q", err, tc.want[0])
			}
		})
	}
}

// The API server refuses a finalizer without a domain for built-in kinds.
func TestOpinionated_FinalizerOfABuiltInKind(t *testing.T) {
	for name, want := range map[string]bool{"test": false, "example.com/test": true} {
		r := operator.NewOpinionated[*corev1.ConfigMap](name, &operator.TypedReconciler[*corev1.ConfigMap]{})
		if err := r.Validate(t.Context()); (err == nil) != want {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}
