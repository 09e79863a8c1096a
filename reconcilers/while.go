// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
)

var _ subReconciler = (*While[client.Object])(nil)

// While runs a sub reconciler repeatedly while a condition is true. Do not use it to wait for external state: the loop
// occupies a worker of the controller until it ends. To wait, return a [Result] with RequeueAfter, or watch the object.
//
// Results are combined with [AggregateResults]. The loop ends at the first error and when the context ends.
type While[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `While`.
	Name string

	// Setup registers watches and indexes that Condition needs. It is called before Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Condition reports whether to run Reconciler again. See [RetrieveIteration]. Required.
	Condition func(ctx context.Context, resource Type) bool

	// Reconciler runs in each iteration. Required.
	Reconciler SubReconciler[Type]

	// MaxIterations limits the number of iterations. A loop that exceeds it returns [ErrMaxIterations]. Defaults to
	// 100; 0 means no limit.
	MaxIterations *int

	lazyInit sync.Once
}

// ErrMaxIterations is the error of a [While] whose condition is still true after the last iteration.
type ErrMaxIterations struct {
	// Iterations is the number of completed iterations.
	Iterations int
}

func (err *ErrMaxIterations) Error() string {
	return fmt.Sprintf("exceeded max iterations: %d", err.Iterations)
}

const defaultMaxIterations = 100

func (r *While[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "While"
		}
		if r.MaxIterations == nil {
			r.MaxIterations = new(defaultMaxIterations)
		}
	})
}

// SetupWithManager validates the reconciler, calls Setup and sets up Reconciler.
func (r *While[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *While[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *While[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *While[T]) describe(d *description) {
	r.init()
	d.is("While", r.Name)
	d.require(r.Condition != nil, "must implement Condition")
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.setsUp(r.Setup)
	d.nests(nested{role: "*", field: "Reconciler", step: true, reconciler: r.Reconciler})
}

// Reconcile runs the loop.
func (r *While[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *While[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	aggregate := Result{}
	waits := waitsFrom(ctx)
	for i := 0; ; i++ {
		if err := interrupted(ctx); err != nil {
			return aggregate, err
		}
		if limit := *r.MaxIterations; limit != 0 && i >= limit {
			return aggregate, &ErrMaxIterations{Iterations: i}
		}
		ctx := context.WithValue(ctx, iterationKey{}, i)
		if !r.Condition(ctx, resource) {
			return aggregate, nil
		}
		before := waits.begin()
		result, err := step.Run(ctx, step.Node{Name: strconv.Itoa(i), Item: true}, resource, r.Reconciler.Reconcile)
		waits.end(before, err)
		aggregate = AggregateResults(aggregate, result)
		if err != nil {
			return aggregate, err
		}
	}
}

type iterationKey struct{}

// RetrieveIteration returns the zero-based iteration of the innermost [While], or -1 outside of a loop.
func RetrieveIteration(ctx context.Context) int {
	if i, ok := ctx.Value(iterationKey{}).(int); ok {
		return i
	}
	return -1
}
