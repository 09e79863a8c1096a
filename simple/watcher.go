// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"

	"trueup.dev/operator"
	"trueup.dev/resource"
)

var (
	_ operator.ResourceWatcher         = (*Watcher)(nil)
	_ operator.Syncer[resource.Object] = (*Watcher)(nil)
)

// Watcher is an [operator.ResourceWatcher] that calls functions, for objects of any type. See [WatcherFuncs] for one
// Go type.
type Watcher = WatcherFuncs[resource.Object]

// WatcherFuncs is an [operator.ResourceWatcher] that calls functions, for one Go type. For a nil function it does
// nothing and succeeds. For an object of another type it returns an [operator.CannotCastError], which is not retried.
type WatcherFuncs[T resource.Object] struct {
	// AddFunc is called for an object that has not been handled before.
	AddFunc func(ctx context.Context, object T) error
	// UpdateFunc is called for an object that has changed since it was last handled successfully. previous is the
	// state that was handled then.
	UpdateFunc func(ctx context.Context, previous, object T) error
	// DeleteFunc is called once for an object that no longer exists, or that exists only because of its finalizer.
	DeleteFunc func(ctx context.Context, object T) error
	// SyncFunc is called for an object that was handled before, possibly by an earlier process, and that may have
	// changed since. Defaults to AddFunc, so that changes made while the app was down are not missed.
	SyncFunc func(ctx context.Context, object T) error
}

// Add calls AddFunc.
func (w *WatcherFuncs[T]) Add(ctx context.Context, object resource.Object) error {
	return callTyped(ctx, w.AddFunc, object)
}

// Update calls UpdateFunc.
func (w *WatcherFuncs[T]) Update(ctx context.Context, previous, object resource.Object) error {
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
func (w *WatcherFuncs[T]) Delete(ctx context.Context, object resource.Object) error {
	return callTyped(ctx, w.DeleteFunc, object)
}

// Sync calls SyncFunc, or AddFunc if SyncFunc is nil.
func (w *WatcherFuncs[T]) Sync(ctx context.Context, object resource.Object) error {
	if w.SyncFunc == nil {
		return w.Add(ctx, object)
	}
	return callTyped(ctx, w.SyncFunc, object)
}

func callTyped[T resource.Object](
	ctx context.Context, f func(ctx context.Context, object T) error, object resource.Object,
) error {
	if f == nil {
		return nil
	}
	typed, ok := object.(T)
	if !ok {
		return operator.NewCannotCastError[T](object)
	}
	return f(ctx, typed)
}
