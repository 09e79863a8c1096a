// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"slices"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

var _ TypedWatcher[resource.Object] = (*Opinionated[resource.Object])(nil)

// errNotAWatcher is returned if an Opinionated of a Reconciler is called as a watcher. An App and an
// InformerController do not call these methods; they unwrap the Opinionated.
var errNotAWatcher = errors.New("an Opinionated that does not wrap a watcher can be called only by controllers")

// watcher returns the watcher that was passed to OpinionatedWatcher.
func (r *Opinionated[T]) watcher() (TypedWatcher[T], error) {
	if r.Handler != nil {
		if l, ok := r.Handler.Reconciler.(*leaf[T]); ok {
			if watcher, ok := l.handler.(TypedWatcher[T]); ok && !nilcheck.IsNil(watcher) {
				return watcher, nil
			}
		}
	}
	return nil, errNotAWatcher
}

// Add calls the watcher, without a finalizer. It makes an Opinionated usable where a watcher is expected: see
// [AsOpinionated].
func (r *Opinionated[T]) Add(ctx context.Context, object T) error {
	watcher, err := r.watcher()
	if err != nil {
		return err
	}
	return watcher.Add(ctx, object)
}

// Update calls the watcher, as Add does.
func (r *Opinionated[T]) Update(ctx context.Context, previous, object T) error {
	watcher, err := r.watcher()
	if err != nil {
		return err
	}
	return watcher.Update(ctx, previous, object)
}

// Delete calls the watcher, as Add does.
func (r *Opinionated[T]) Delete(ctx context.Context, object T) error {
	watcher, err := r.watcher()
	if err != nil {
		return err
	}
	return watcher.Delete(ctx, object)
}

// AsOpinionated returns a new [Opinionated] for objects of any type if handler is an Opinionated, or wraps one by
// [WidenWatcher] or [AsReconciler]. An App and an [InformerController] use it: an Opinionated must neither be wrapped
// again nor be called like a plain handler.
func AsOpinionated(handler any) (*Opinionated[resource.Object], bool) {
	for !nilcheck.IsNil(handler) {
		if given, ok := handler.(interface {
			untyped() *Opinionated[resource.Object]
		}); ok {
			return given.untyped(), true
		}
		switch wrapper := handler.(type) {
		case interface{ Wrapped() any }:
			handler = wrapper.Wrapped()
		case interface{ tree() any }:
			handler = wrapper.tree()
		default:
			return nil, false
		}
	}
	return nil, false
}

// untyped returns a copy for objects of any type. The copy has its own memory.
func (r *Opinionated[T]) untyped() *Opinionated[resource.Object] {
	out := &Opinionated[resource.Object]{
		Name: r.Name, Finalizer: r.Finalizer, Aliases: slices.Clone(r.Aliases), InProgressFinalizer: r.InProgressFinalizer,
	}
	if r.Handler != nil {
		out.Handler = r.Handler.untyped()
	}
	return out
}

// untyped returns a copy for objects of any type. The copy has its own memory.
func (r *WithEdge[T]) untyped() *WithEdge[resource.Object] {
	out := &WithEdge[resource.Object]{
		Name: r.Name, OnlyChanges: r.OnlyChanges, React: r.React, Resync: r.Resync, Finalizers: slices.Clone(r.Finalizers),
		RetryPolicy: r.RetryPolicy, RetryDequeuePolicy: r.RetryDequeuePolicy, PreviousState: r.PreviousState,
		OnError: untypedHook(r.OnError), OnExhausted: untypedHook(r.OnExhausted),
	}
	if r.Handled != nil {
		out.Handled = func(object resource.Object) bool {
			typed, ok := object.(T)
			return ok && r.Handled(typed)
		}
	}
	l, ok := r.Reconciler.(*leaf[T])
	if !ok {
		if r.Reconciler != nil {
			out.Reconciler = Widen(r.Reconciler)
		}
		return out
	}
	switch handler := l.handler.(type) {
	case TypedWatcher[T]:
		out.Reconciler = WatcherReconciler(WidenWatcher(handler)).Reconciler
	case Reconciler:
		out.Reconciler = AsSubReconciler[resource.Object](handler).Reconciler
	default: // validation reports the nil handler
		out.Reconciler = &leaf[resource.Object]{handler: l.handler}
	}
	return out
}

// untypedHook returns a hook for objects of any type. Objects of another type fail before they reach the hook.
func untypedHook[T resource.Object](hook func(ctx context.Context, object T, err error)) func(
	ctx context.Context, object resource.Object, err error,
) {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, object resource.Object, err error) {
		if typed, ok := object.(T); ok {
			hook(ctx, typed, err)
		}
	}
}

func (r *subReconciler[T]) tree() any { return r.SubReconciler }

var _ reconcilers.SubReconciler[resource.Object] = (*Opinionated[resource.Object])(nil)
