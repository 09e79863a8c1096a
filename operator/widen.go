// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"

	"trueup.dev/internal/engine/registration"
	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

// Widen converts a tree of reconcilers for one Go type to a tree for objects of any type, as an App uses it. Objects
// of another type lead to a [CannotCastError].
func Widen[T resource.Object](reconciler reconcilers.SubReconciler[T]) reconcilers.SubReconciler[resource.Object] {
	return &widened[T]{reconciler}
}

type widened[T resource.Object] struct{ reconciler reconcilers.SubReconciler[T] }

var _ validation.Validator = (*widened[resource.Object])(nil)

func (r *widened[T]) SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	if err := r.Validate(ctx); err != nil {
		return err
	}
	defer registration.Enter(ctx, r.reconciler)()
	return r.reconciler.SetupWithManager(ctx, mgr, bldr)
}

func (r *widened[T]) Validate(ctx context.Context) error {
	if r.reconciler == nil {
		return errors.New("the reconciler must not be nil")
	}
	if ctx, v := setupcheck.Part(ctx, r.reconciler, "Widen must have a valid reconciler"); v != nil {
		return v.Validate(ctx)
	}
	return nil
}

func (r *widened[T]) Reconcile(ctx context.Context, object resource.Object) (reconcilers.Result, error) {
	typed, err := cast[T](object)
	if err != nil {
		return reconcilers.Result{}, err
	}
	return r.reconciler.Reconcile(ctx, typed)
}

// treeFor returns, for objects of type T, the tree that [AsReconciler] has wrapped. It returns false for any other
// Reconciler.
func treeFor[T resource.Object](reconciler Reconciler) (reconcilers.SubReconciler[T], bool) {
	if same, ok := reconciler.(*subReconciler[T]); ok {
		return same.SubReconciler, true
	}
	if other, ok := reconciler.(interface {
		widen() reconcilers.SubReconciler[resource.Object]
	}); ok {
		tree, ok := any(other.widen()).(reconcilers.SubReconciler[T])
		return tree, ok
	}
	return nil, false
}

func (r *subReconciler[T]) widen() reconcilers.SubReconciler[resource.Object] {
	return Widen(r.SubReconciler)
}
