// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
)

var _ subReconciler = (*Advice[client.Object])(nil)

// Advice adds functions that run before, after or around a sub reconciler. The term comes from aspect-oriented
// programming.
type Advice[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `Advice`.
	Name string

	// Setup registers watches and indexes that the functions need. It is called before Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconciler is the advised reconciler. Required.
	Reconciler SubReconciler[Type]

	// Before is called first. If it returns a context, the reconciler uses that context. If it returns an error, Advice
	// returns the result and the error immediately. Optional.
	Before func(ctx context.Context, resource Type) (context.Context, Result, error)

	// Around is called instead of Reconciler. It can call Reconciler once, several times or not at all. Defaults to
	// calling it once.
	Around func(ctx context.Context, resource Type, reconciler SubReconciler[Type]) (Result, error)

	// After is called last, unless Before failed. It returns the final result and error. Optional.
	After func(ctx context.Context, resource Type, result Result, err error) (Result, error)

	lazyInit sync.Once
}

func (r *Advice[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "Advice"
		}
	})
}

// SetupWithManager validates the reconciler, calls Setup and sets up Reconciler.
func (r *Advice[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required field. If ctx requests recursion, it also validates Reconciler.
func (r *Advice[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *Advice[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *Advice[T]) describe(d *description) {
	r.init()
	d.is("Advice", r.Name)
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.setsUp(r.Setup)
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
}

// Reconcile runs Before, Around and After.
func (r *Advice[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *Advice[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	before := Result{}
	if r.Before != nil {
		replaced, result, err := r.Before(ctx, resource)
		if err != nil {
			return result, err
		}
		if replaced != nil {
			ctx = replaced
		}
		before = result
	}
	var result Result
	var err error
	if r.Around != nil {
		result, err = r.Around(ctx, resource, r.Reconciler)
	} else {
		result, err = r.Reconciler.Reconcile(ctx, resource)
	}
	result = AggregateResults(before, result)
	if r.After != nil {
		return r.After(ctx, resource, result, err)
	}
	return result, err
}
