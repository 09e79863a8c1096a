// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
)

var _ subReconciler = (*TryCatch[client.Object])(nil)

// TryCatch handles the error of a sub reconciler with a function, and always runs another sub reconciler afterwards.
type TryCatch[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `TryCatch`.
	Name string

	// Setup registers watches and indexes. It is called before Try and Finally are set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Try runs first. Required.
	Try SubReconciler[Type]

	// Catch is called with the result and error of Try, also if the error is nil. It returns the result and error to
	// use. Optional.
	Catch func(ctx context.Context, resource Type, result Result, err error) (Result, error)

	// Finally always runs after Catch, to clean up after Try. Its result is combined with that of Try and Catch, see
	// [AggregateResults]: the earliest requeue is used. If Finally fails, its error replaces the previous error.
	// Optional.
	Finally SubReconciler[Type]

	lazyInit sync.Once
}

func (r *TryCatch[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "TryCatch"
		}
	})
}

// SetupWithManager validates the reconciler, calls Setup and sets up Try and Finally.
func (r *TryCatch[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Try and Finally.
func (r *TryCatch[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *TryCatch[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *TryCatch[T]) describe(d *description) {
	r.init()
	d.is("TryCatch", r.Name)
	d.require(given(r.Try), "must implement Try")
	d.setsUp(r.Setup)
	d.nests(nested{role: "Try", step: true, reconciler: r.Try})
	d.nests(nested{role: "Finally", step: true, reconciler: r.Finally})
}

// Reconcile runs Try, Catch and Finally.
func (r *TryCatch[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *TryCatch[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	result, err := step.Run(ctx, step.Node{Name: "Try"}, resource, r.Try.Reconcile)
	if r.Catch != nil {
		result, err = r.Catch(ctx, resource, result, err)
	}
	if r.Finally == nil {
		return result, err
	}
	finally, finallyErr := step.Run(ctx, step.Node{Name: "Finally"}, resource, r.Finally.Reconcile)
	if finallyErr != nil {
		err = finallyErr
	}
	return AggregateResults(result, finally), err
}
