// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
)

var _ subReconciler = (*IfThen[client.Object])(nil)

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
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Then and Else.
func (r *IfThen[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *IfThen[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *IfThen[T]) describe(d *description) {
	r.init()
	d.is("IfThen", r.Name)
	d.require(r.If != nil, "must implement If")
	d.require(given(r.Then), "must implement Then")
	d.setsUp(r.Setup)
	branch := func(then bool) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return onBranch(ctx, r, then) }
	}
	d.nests(nested{role: "Then", step: true, reconciler: r.Then, inside: branch(true)})
	d.nests(nested{role: "Else", step: true, reconciler: r.Else, inside: branch(false)})
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
