// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"strconv"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/step"
	"trueup.dev/validation"
)

var (
	_ SubReconciler[client.Object] = Always[client.Object](nil)
	_ validation.Validator         = Always[client.Object](nil)
)

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
	return setupEach(ctx, mgr, bldr, r)
}

// Validate validates every sub reconciler if ctx requests recursion, see [validation.WithRecursive].
func (r Always[T]) Validate(ctx context.Context) error {
	return validateEach(ctx, "Always", r)
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

// setupEach sets up the reconcilers of a list, in order.
func setupEach[T client.Object](ctx context.Context, mgr Manager, bldr *Builder, list []SubReconciler[T]) error {
	for i, reconciler := range list {
		log := logr.FromContextOrDiscard(ctx).WithName(strconv.Itoa(i))
		if err := setUpNested(logr.NewContext(ctx, log), mgr, bldr, reconciler); err != nil {
			return err
		}
	}
	return nil
}

// validateEach validates the reconcilers of a list if ctx requests recursion.
func validateEach[T client.Object](ctx context.Context, kind string, list []SubReconciler[T]) error {
	problems := problems{}
	for i, reconciler := range list {
		if reconciler == nil {
			problems.add("%s must not have a nil %s[%d]", kind, kind, i)
			continue
		}
		problems.nested(ctx, reconciler, "%s must have a valid %s[%d]", kind, kind, i)
	}
	return problems.err()
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
