// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
)

var _ subReconciler = Sequence[client.Object](nil)

// Sequence runs sub reconcilers in order and combines their results with [AggregateResults]. It stops at the first
// error and returns the result and the error of the sub reconciler that failed.
//
// A Sequence can be used as a value or as a pointer. It has no state.
type Sequence[Type client.Object] []SubReconciler[Type]

// SetupWithManager sets up every sub reconciler, in order.
func (r Sequence[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate validates every sub reconciler if ctx requests recursion, see [validation.WithRecursive].
func (r Sequence[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r Sequence[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r Sequence[T]) describe(d *description) {
	describeEach(d, "Sequence", r)
}

// Reconcile runs the sub reconcilers.
func (r Sequence[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	aggregate := Result{}
	waits := waitsFrom(ctx)
	for i, reconciler := range r {
		if err := interrupted(ctx); err != nil {
			return aggregate, err
		}
		before := waits.begin()
		result, err := step.Run(ctx, step.Node{Name: strconv.Itoa(i)}, resource, reconciler.Reconcile)
		waits.end(before, err)
		if err != nil {
			return result, err
		}
		aggregate = AggregateResults(aggregate, result)
	}
	return aggregate, nil
}
