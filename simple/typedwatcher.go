// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"

	"trueup.dev/operator"
	"trueup.dev/resource"
)

var (
	_ operator.ResourceWatcher         = (*TypedWatcher[resource.Object])(nil)
	_ operator.Syncer[resource.Object] = (*TypedWatcher[resource.Object])(nil)
)

// TypedWatcher is a [Watcher] for one Go type. Objects of another type are an [operator.CannotCastError], which is not retried.
type TypedWatcher[T resource.Object] struct {
	// AddFunc is called for an object that has not been handled before.
	AddFunc func(ctx context.Context, object T) error
	// UpdateFunc is called for an object that has changed since it was last handled with success, when it was as in previous.
	UpdateFunc func(ctx context.Context, previous, object T) error
	// DeleteFunc is called once for an object that is gone, or that is only kept by its finalizer.
	DeleteFunc func(ctx context.Context, object T) error
	// SyncFunc is called for an object that was handled before, by an earlier process perhaps, and may have changed since. Defaults to AddFunc.
	SyncFunc func(ctx context.Context, object T) error
}

// Add calls AddFunc.
func (w *TypedWatcher[T]) Add(ctx context.Context, object resource.Object) error {
	return callTyped(ctx, w.AddFunc, object)
}

// Update calls UpdateFunc.
func (w *TypedWatcher[T]) Update(ctx context.Context, previous, object resource.Object) error {
	if w.UpdateFunc == nil {
		return nil
	}
	before, ok := previous.(T)
	if !ok {
		return operator.NewCannotCastError[T](previous)
	}
	return callTyped(ctx, func(ctx context.Context, object T) error { return w.UpdateFunc(ctx, before, object) }, object)
}

// Delete calls DeleteFunc.
func (w *TypedWatcher[T]) Delete(ctx context.Context, object resource.Object) error {
	return callTyped(ctx, w.DeleteFunc, object)
}

// Sync calls SyncFunc, or else AddFunc.
func (w *TypedWatcher[T]) Sync(ctx context.Context, object resource.Object) error {
	if w.SyncFunc == nil {
		return w.Add(ctx, object)
	}
	return callTyped(ctx, w.SyncFunc, object)
}

func callTyped[T resource.Object](ctx context.Context, f func(ctx context.Context, object T) error, object resource.Object) error {
	if f == nil {
		return nil
	}
	typed, ok := object.(T)
	if !ok {
		return operator.NewCannotCastError[T](object)
	}
	return f(ctx, typed)
}
