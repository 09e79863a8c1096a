// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/registration"
	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/engine/step"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

var (
	_ reconcilers.SubReconciler[client.Object] = FanOut[client.Object](nil)
	_ validation.Validator                     = FanOut[client.Object](nil)
)

// FanOut runs several handlers for one resource, in order. Unlike in a [reconcilers.Sequence], a failing handler does
// not stop those that follow. Each handler has its own failures and retries, and is called again only for changes that
// it has not handled. The handlers run one after the other and share the controller's workers.
type FanOut[Type client.Object] []reconcilers.SubReconciler[Type]

// absent is a handler that is also called for resources that do not exist.
type absent interface {
	Absent(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error)
}

// handler is a reconciler with additional support for running below a [Controller].
type handler interface {
	absent
	under(p place)
	listen(ctx context.Context, bldr *reconcilers.Builder)
	writesStatus() bool
	gaveUp(key types.NamespacedName) bool
}

func (r FanOut[T]) under(p place) {
	for _, sub := range r {
		if h, ok := sub.(handler); ok {
			h.under(p)
		}
	}
}

func (r FanOut[T]) gaveUp(key types.NamespacedName) bool {
	return slices.ContainsFunc(r, func(sub reconcilers.SubReconciler[T]) bool {
		h, ok := sub.(handler)
		return ok && h.gaveUp(key)
	})
}

func (r FanOut[T]) listen(ctx context.Context, bldr *reconcilers.Builder) {
	for _, sub := range r {
		if h, ok := sub.(handler); ok {
			h.listen(ctx, bldr)
		}
	}
}

// writesStatus reports whether any handler is a tree of reconcilers: their changes of the status must be written.
func (r FanOut[T]) writesStatus() bool {
	return slices.ContainsFunc(r, func(sub reconcilers.SubReconciler[T]) bool {
		h, ok := sub.(handler)
		return !ok || h.writesStatus()
	})
}

// SetupWithManager sets up every handler, in order.
func (r FanOut[T]) SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	for _, handler := range r {
		if err := setUpHandler(ctx, mgr, bldr, handler); err != nil {
			return err
		}
	}
	return nil
}

// setUpHandler sets up a nested reconciler. It records that the watches that are added belong to it.
func setUpHandler[T client.Object](
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder, handler reconcilers.SubReconciler[T],
) error {
	defer registration.Enter(ctx, handler)()
	return handler.SetupWithManager(ctx, mgr, bldr)
}

// Validate validates every handler when ctx asks for recursion, see [validation.WithRecursive].
func (r FanOut[T]) Validate(ctx context.Context) error {
	var errs []error
	for i, handler := range r {
		if handler == nil {
			errs = append(errs, fmt.Errorf("FanOut must not have a nil handler at index %d", i))
			continue
		}
		if ctx, v := setupcheck.Part(ctx, handler, "FanOut must have a valid handler at index %d", i); v != nil {
			if err := v.Validate(ctx); err != nil {
				errs = append(errs, fmt.Errorf("FanOut must have a valid handler at index %d: %w", i, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Reconcile runs the handlers. The result is the earliest that any handler returns. Reconcile joins only the errors of
// the most urgent class: a retryable error is not joined with a terminal one, and an error that must be logged is not
// joined with a quiet one.
func (r FanOut[T]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	return r.each(ctx, func(i int) (reconcilers.Result, error) {
		return step.Run(ctx, step.Node{Name: strconv.Itoa(i)}, resource, r[i].Reconcile)
	})
}

// Absent calls the handlers that support resources that do not exist.
func (r FanOut[T]) Absent(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error) {
	return r.each(ctx, func(i int) (reconcilers.Result, error) {
		if handler, ok := r[i].(absent); ok {
			return handler.Absent(ctx, req)
		}
		return reconcilers.Result{}, nil
	})
}

func (r FanOut[T]) each(ctx context.Context, do func(i int) (reconcilers.Result, error)) (reconcilers.Result, error) {
	aggregate, failures := reconcilers.Result{}, [noFailure][]error{}
	for i := range r {
		result, err := do(i)
		aggregate = reconcilers.AggregateResults(aggregate, result)
		if sort := sortOf(err); sort != noFailure {
			failures[sort] = append(failures[sort], err)
		}
	}
	worst := failure(slices.IndexFunc(failures[:], func(errs []error) bool { return len(errs) > 0 }))
	if worst < 0 {
		return aggregate, nil
	}
	err := errors.Join(failures[worst]...)
	if terminalErr := errors.Join(failures[terminal]...); terminalErr != nil &&
		(worst < terminal || aggregate.RequeueAfter > 0) {
		// A terminal error would cancel the retries of the other handlers.
		logr.FromContextOrDiscard(ctx).Error(terminalErr, "a handler has given up")
		if worst == terminal {
			err = fmt.Errorf("%w: %v", reconcilers.ErrRetryAfter, terminalErr) //nolint:errorlint // errors.Is must not find it
		}
	}
	return aggregate, err
}

// failure is a class of errors, the most urgent first.
type failure int

const (
	loud     failure = iota // retried by the rate limiter, and logged
	quiet                   // retried by the rate limiter
	timed                   // retried after the time in the result, if set
	terminal                // not retried
	halting                 // not a failure
	noFailure
)

func sortOf(err error) failure {
	switch {
	case err == nil:
		return noFailure
	case errors.Is(err, reconcilers.ErrHaltSubReconcilers):
		return halting
	case errors.Is(err, reconcilers.ErrRetryAfter):
		return timed
	case errors.Is(err, reconcilers.ErrQuiet):
		return quiet
	case errors.Is(err, reconcile.TerminalError(nil)):
		return terminal
	}
	return loud
}
