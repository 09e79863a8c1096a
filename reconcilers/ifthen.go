// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/validation"
)

var (
	_ SubReconciler[client.Object] = (*IfThen[client.Object])(nil)
	_ validation.Validator         = (*IfThen[client.Object])(nil)
)

// IfThen runs one of two sub reconcilers, depending on a condition on the resource, and returns its result and error.
// Both are set up, because the condition may change at any time.
//
// In a step of [Steps] that is removed, also because the resource is being deleted, both run: the one that the
// condition does not choose may have made children before. The chosen one runs first. Their results and errors are
// combined as by [Always].
type IfThen[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `IfThen`.
	Name string

	// Setup registers watches and indexes that If needs. It is called before Then and Else are set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// If reports whether to run Then. Required.
	If func(ctx context.Context, resource Type) bool

	// Then runs if If returns true. Required.
	Then SubReconciler[Type]

	// Else runs if If returns false. Optional.
	Else SubReconciler[Type]

	lazyInit sync.Once
}

func (r *IfThen[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "IfThen"
		}
	})
}

// SetupWithManager validates the reconciler, calls Setup and sets up Then and Else.
func (r *IfThen[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUp(ctx, mgr, bldr, r.Name, r.Validate, r.Setup,
		r.branch(true, nested(r.Then)), r.branch(false, nested(r.Else)))
}

// branch returns the function that sets up Then or Else.
func (r *IfThen[T]) branch(then bool, setup setupFunc) setupFunc {
	if setup == nil {
		return nil
	}
	return func(ctx context.Context, mgr Manager, bldr *Builder) error {
		return setup(onBranch(ctx, r, then), mgr, bldr)
	}
}

// Validate checks the required fields. If ctx requests recursion, it also validates Then and Else.
func (r *IfThen[T]) Validate(ctx context.Context) error {
	r.init()
	problems := problems{}
	if r.If == nil {
		problems.add("IfThen %q must implement If", r.Name)
	}
	if nilcheck.IsNilPointer(r.Then) {
		problems.add("IfThen %q must implement Then", r.Name)
	}
	problems.nested(onBranch(ctx, r, true), r.Then, "IfThen %q must have a valid Then", r.Name)
	problems.nested(onBranch(ctx, r, false), r.Else, "IfThen %q must have a valid Else", r.Name)
	return problems.err()
}

// Reconcile runs Then or Else.
func (r *IfThen[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, func(ctx context.Context, resource T) (Result, error) {
		then := r.If(ctx, resource)
		if run := stepRunFrom(ctx); run == nil || !run.removes {
			return r.run(ctx, resource, then)
		}
		waits := waitsFrom(ctx)
		aggregate, errs := Result{}, []error{}
		for _, branch := range []bool{then, !then} {
			before := waits.begin()
			result, err := r.run(ctx, resource, branch)
			waits.end(before, err)
			aggregate, errs = AggregateResults(aggregate, result), append(errs, err)
		}
		return aggregate, joinErrors(errs...)
	})
}

// run runs Then or Else.
func (r *IfThen[T]) run(ctx context.Context, resource T, then bool) (Result, error) {
	switch {
	case then:
		return step.Run(ctx, step.Node{Name: "Then"}, resource, r.Then.Reconcile)
	case r.Else != nil:
		return step.Run(ctx, step.Node{Name: "Else"}, resource, r.Else.Reconcile)
	}
	return Result{}, nil
}
