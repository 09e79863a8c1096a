// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/nilcheck"
	"trueup.dev/internal/setups"
)

// setupFunc sets up a part of a reconciler.
type setupFunc func(ctx context.Context, mgr Manager, bldr *Builder) error

// setUp validates a reconciler and then runs parts in order, with the name of the reconciler in the logger. It skips
// nil parts.
func setUp(
	ctx context.Context, mgr Manager, bldr *Builder, name string, validate func(context.Context) error, parts ...setupFunc,
) error {
	if err := validate(ctx); err != nil {
		return everyProblem(err)
	}
	ctx = logr.NewContext(ctx, logr.FromContextOrDiscard(ctx).WithName(name))
	for _, part := range parts {
		if part == nil {
			continue
		}
		if err := part(ctx, mgr, bldr); err != nil {
			return err
		}
	}
	return nil
}

// nested returns the function that sets up a nested reconciler.
func nested[T client.Object](reconciler SubReconciler[T]) setupFunc {
	if nilcheck.IsNilPointer(reconciler) {
		return nil
	}
	return func(ctx context.Context, mgr Manager, bldr *Builder) error {
		return setUpNested(ctx, mgr, bldr, reconciler)
	}
}

// setUpNested sets up a nested reconciler. It records that the watches that are added belong to it.
func setUpNested[T client.Object](ctx context.Context, mgr Manager, bldr *Builder, reconciler SubReconciler[T]) error {
	defer setups.Enter(ctx, reconciler)()
	return reconciler.SetupWithManager(ctx, mgr, bldr)
}
