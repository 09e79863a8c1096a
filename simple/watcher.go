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

// Watcher is an [operator.ResourceWatcher] made of functions. A function that is nil has nothing to do, and succeeds.
type Watcher struct {
	// AddFunc is called for an object that has not been handled before.
	AddFunc func(ctx context.Context, object resource.Object) error
	// UpdateFunc is called for an object that has changed since it was last handled with success, when it was as in previous.
	UpdateFunc func(ctx context.Context, previous, object resource.Object) error
	// DeleteFunc is called once for an object that is gone, or that is only kept by its finalizer.
	DeleteFunc func(ctx context.Context, object resource.Object) error
	// SyncFunc is called for an object that was handled before, by an earlier process perhaps, and may have changed since. Defaults to AddFunc, so that what
	// has changed while the app was down is not missed.
	SyncFunc func(ctx context.Context, object resource.Object) error
}

// Add calls AddFunc.
func (w *Watcher) Add(ctx context.Context, object resource.Object) error {
	if w.AddFunc == nil {
		return nil
	}
	return w.AddFunc(ctx, object)
}

// Update calls UpdateFunc.
func (w *Watcher) Update(ctx context.Context, previous, object resource.Object) error {
	if w.UpdateFunc == nil {
		return nil
	}
	return w.UpdateFunc(ctx, previous, object)
}

// Delete calls DeleteFunc.
func (w *Watcher) Delete(ctx context.Context, object resource.Object) error {
	if w.DeleteFunc == nil {
		return nil
	}
	return w.DeleteFunc(ctx, object)
}

// Sync calls SyncFunc, or else AddFunc.
func (w *Watcher) Sync(ctx context.Context, object resource.Object) error {
	if w.SyncFunc == nil {
		return w.Add(ctx, object)
	}
	return w.SyncFunc(ctx, object)
}
