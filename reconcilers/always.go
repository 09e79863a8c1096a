// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"strconv"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/step"
	"trueup.dev/validation"
)

var (
	_ SubReconciler[client.Object] = Always[client.Object](nil)
	_ validation.Validator         = Always[client.Object](nil)
)

// Always runs sub reconcilers one after the other, in order, whether or not those before have failed. Use it for parts
// that do not depend on each other, so that a broken one does not hold up the rest; use [Sequence] where they do.
//
// Results are combined with [AggregateResults], also when there are errors. The error joins those of all that failed;
// as soon as one is not quiet, only those that are not count, so that a quiet error never silences another.
//
// An Always is used as a value or by pointer and has no state of its own.
type Always[Type client.Object] []SubReconciler[Type]

// SetupWithManager sets up every sub reconciler, in order.
func (r Always[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setupEach(ctx, mgr, bldr, r)
}

// Validate validates every sub reconciler when ctx asks for recursion, see [validation.WithRecursive].
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
	return aggregate, joinLoud(errs...)
}

// setupEach sets up the reconcilers of a list, in order.
func setupEach[T client.Object](ctx context.Context, mgr Manager, bldr *Builder, list []SubReconciler[T]) error {
	for i, reconciler := range list {
		log := logr.FromContextOrDiscard(ctx).WithName(strconv.Itoa(i))
		if err := reconciler.SetupWithManager(logr.NewContext(ctx, log), mgr, bldr); err != nil {
			return err
		}
	}
	return nil
}

// validateEach validates the reconcilers of a list.
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

// interrupted is the error with which a reconciler stops between two steps once its context has ended. A shutdown is
// nothing to report, so the error is quiet then. Running out of time is not, nor is a context that an author has
// cancelled.
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

// isShutdown is true when the request is cut off from outside: the context of the whole request is cancelled, and not
// just one below it.
func isShutdown(ctx context.Context) bool {
	if request := scopeFrom(ctx).requestErr; request != nil {
		return errors.Is(request(), context.Canceled)
	}
	return errors.Is(ctx.Err(), context.Canceled)
}
