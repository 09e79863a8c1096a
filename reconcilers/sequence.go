// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"strconv"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/step"
	"trueup.dev/validation"
)

var (
	_ SubReconciler[client.Object] = Sequence[client.Object](nil)
	_ validation.Validator         = Sequence[client.Object](nil)
)

// Sequence runs sub reconcilers one after the other, in order, and combines their results with [AggregateResults]. It stops at the first error
// and then returns the result and the error of the reconciler that failed.
//
// A Sequence is used as a value or by pointer and has no state of its own.
type Sequence[Type client.Object] []SubReconciler[Type]

// SetupWithManager sets up every sub reconciler, in order.
func (r Sequence[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	for i, reconciler := range r {
		log := logr.FromContextOrDiscard(ctx).WithName(strconv.Itoa(i))
		if err := reconciler.SetupWithManager(logr.NewContext(ctx, log), mgr, bldr); err != nil {
			return err
		}
	}
	return nil
}

// Validate validates every sub reconciler when ctx asks for recursion, see [validation.WithRecursive].
func (r Sequence[T]) Validate(ctx context.Context) error {
	problems := problems{}
	for i, reconciler := range r {
		if reconciler == nil {
			problems.add("Sequence must not have a nil Sequence[%d]", i)
			continue
		}
		problems.nested(ctx, reconciler, "Sequence must have a valid Sequence[%d]", i)
	}
	return problems.err()
}

// Reconcile runs the sub reconcilers.
func (r Sequence[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	aggregate := Result{}
	for i, reconciler := range r {
		result, err := step.Run(ctx, step.Node{Name: strconv.Itoa(i)}, resource, reconciler.Reconcile)
		if err != nil {
			return result, err
		}
		aggregate = AggregateResults(aggregate, result)
	}
	return aggregate, nil
}
