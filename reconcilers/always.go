// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
)

var _ subReconciler = Always[client.Object](nil)

// Always runs all sub reconcilers in order, even if one of them fails. Use it for reconcilers that do not depend on
// each other. Use [Sequence] if they do.
//
// Results are combined with [AggregateResults], also when there are errors. The returned error joins the errors of all
// sub reconcilers. If at least one of them is not quiet, quiet errors are left out, so that a quiet error does not
// silence another error.
//
// An Always can be used as a value or as a pointer. It has no state.
type Always[Type client.Object] []SubReconciler[Type]

// SetupWithManager sets up every sub reconciler, in order.
func (r Always[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate validates every sub reconciler if ctx requests recursion, see [validation.WithRecursive].
func (r Always[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r Always[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r Always[T]) describe(d *description) {
	describeEach(d, "Always", r)
}

// Reconcile runs the sub reconcilers.
func (r Always[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	aggregate := Result{}
	waits := waitsFrom(ctx)
	errs := []error{}
	for i, reconciler := range r {
		if err := interrupted(ctx); err != nil {
			errs = append(errs, err)
			break
		}
		before := waits.begin()
		result, err := step.Run(ctx, step.Node{Name: strconv.Itoa(i)}, resource, reconciler.Reconcile)
		waits.end(before, err)
		aggregate = AggregateResults(aggregate, result)
		errs = append(errs, err)
	}
	return aggregate, joinErrors(errs...)
}

// describeEach describes a list of reconcilers, which has no name and no step of its own.
func describeEach[T client.Object](d *description, kind string, list []SubReconciler[T]) {
	d.is(kind, "")
	for i, reconciler := range list {
		if !given(reconciler) {
			d.require(false, "must not have a nil %s[%d]", kind, i)
			continue
		}
		index := strconv.Itoa(i)
		d.nests(nested{
			role: index, field: kind + "[" + index + "]", step: true, reconciler: reconciler, setUpIn: logNamed(index),
		})
	}
}

// interrupted returns the error that stops a list of reconcilers between two steps after the context has ended. On a
// shutdown the error is quiet. It is not quiet if a deadline was exceeded or user code canceled the context.
func interrupted(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case isShutdown(ctx):
		return errors.Join(ErrQuiet, ErrSkipStatusUpdate, context.Cause(ctx))
	default:
		return context.Cause(ctx)
	}
}

// isShutdown reports whether the context of the whole request was canceled, not only a context derived from it.
func isShutdown(ctx context.Context) bool {
	if request := scopeFrom(ctx).requestErr; request != nil {
		return errors.Is(request(), context.Canceled)
	}
	return errors.Is(ctx.Err(), context.Canceled)
}
