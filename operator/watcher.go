// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"trueup.dev/resource"
)

// TypedWatcher handles the events of a kind with one method per type of event. Calls for one object never overlap.
// Objects are copies that the watcher may change.
//
// Intermediate states are not delivered: all changes during a call lead to one more call.
type TypedWatcher[T resource.Object] interface {
	// Add is called for an object that has not been handled before.
	Add(ctx context.Context, object T) error
	// Update is called for an object that has changed since it was last handled successfully. previous is the state
	// that was handled then.
	Update(ctx context.Context, previous, object T) error
	// Delete is called once for an object that no longer exists, or that exists only because of its finalizer.
	Delete(ctx context.Context, object T) error
}

// Syncer is a [TypedWatcher] with a separate method for objects that may already have been handled.
type Syncer[T resource.Object] interface {
	// Sync is called for an object that was handled before, possibly by an earlier process, and that may have changed
	// since. A watcher without Sync receives Add instead, or Update if the process knows the previous state.
	Sync(ctx context.Context, object T) error
}

// ResourceWatcher is a [TypedWatcher] for objects of any type.
type ResourceWatcher = TypedWatcher[resource.Object]

// Untyped converts a watcher for objects of any type to a watcher for one Go type. It keeps Sync if the watcher has
// it.
func Untyped[T resource.Object](watcher ResourceWatcher) TypedWatcher[T] {
	if _, ok := watcher.(Syncer[resource.Object]); ok {
		return untypedSyncer[T]{untyped[T]{watcher}}
	}
	return untyped[T]{watcher}
}

type untyped[T resource.Object] struct{ watcher ResourceWatcher }

func (w untyped[T]) Add(ctx context.Context, object T) error { return w.watcher.Add(ctx, object) }

func (w untyped[T]) Update(ctx context.Context, previous, object T) error {
	return w.watcher.Update(ctx, previous, object)
}

func (w untyped[T]) Delete(ctx context.Context, object T) error { return w.watcher.Delete(ctx, object) }

// Wrapped returns the wrapped watcher, so that callers can detect a nil watcher.
func (w untyped[T]) Wrapped() any { return w.watcher }

type untypedSyncer[T resource.Object] struct{ untyped[T] }

func (w untypedSyncer[T]) Sync(ctx context.Context, object T) error {
	return w.watcher.(Syncer[resource.Object]).Sync(ctx, object)
}

// WidenWatcher converts a watcher for one Go type to a watcher for objects of any type, as an App uses it. It keeps
// Sync if the watcher has it. Objects of another type lead to a [CannotCastError].
func WidenWatcher[T resource.Object](watcher TypedWatcher[T]) ResourceWatcher {
	if syncer, ok := watcher.(Syncer[T]); ok {
		return widenedSyncer[T]{widenedWatcher[T]{watcher}, syncer}
	}
	return widenedWatcher[T]{watcher}
}

type widenedWatcher[T resource.Object] struct{ watcher TypedWatcher[T] }

func (w widenedWatcher[T]) Add(ctx context.Context, object resource.Object) error {
	return withTyped(ctx, object, w.watcher.Add)
}

func (w widenedWatcher[T]) Update(ctx context.Context, previous, object resource.Object) error {
	return withTyped(ctx, object, func(ctx context.Context, object T) error {
		return withTyped(ctx, previous, func(ctx context.Context, previous T) error {
			return w.watcher.Update(ctx, previous, object)
		})
	})
}

func (w widenedWatcher[T]) Delete(ctx context.Context, object resource.Object) error {
	return withTyped(ctx, object, w.watcher.Delete)
}

// Wrapped returns the wrapped watcher, so that callers can detect a nil watcher.
func (w widenedWatcher[T]) Wrapped() any { return w.watcher }

type widenedSyncer[T resource.Object] struct {
	widenedWatcher[T]
	syncer Syncer[T]
}

func (w widenedSyncer[T]) Sync(ctx context.Context, object resource.Object) error {
	return withTyped(ctx, object, w.syncer.Sync)
}

func withTyped[T resource.Object](
	ctx context.Context, object resource.Object, call func(ctx context.Context, object T) error,
) error {
	typed, err := cast[T](object)
	if err != nil {
		return err
	}
	return call(ctx, typed)
}

// RequeueAfter returns an error by which a watcher requests another call with the same action after d. It is not a
// failure: it is neither logged nor counted, and the retry policy is not called. If it is joined with another error,
// that error is a failure that is retried after d instead of the delay of the retry policy.
func RequeueAfter(d time.Duration) error {
	return requeueAfter(d)
}

type requeueAfter time.Duration

func (d requeueAfter) Error() string {
	return fmt.Sprintf("call again after %s", time.Duration(d))
}

// failedUntil is a failure with the delay after which its handler requests another call.
type failedUntil struct {
	after requeueAfter
	cause error
}

func (e failedUntil) Error() string { return e.cause.Error() }

func (e failedUntil) Unwrap() []error { return []error{e.cause, e.after} }

// requestedDelay returns the delay that a handler requests by its error. failed reports whether the error also contains
// a failure.
func requestedDelay(err error) (after time.Duration, requested, failed bool) {
	var d requeueAfter
	if !errors.As(err, &d) {
		return 0, false, err != nil
	}
	return time.Duration(d), true, !isRequest(err)
}

// isRequest reports whether an error consists only of requests to be called again.
func isRequest(err error) bool {
	switch e := err.(type) { //nolint:errorlint // follows the chain itself
	case requeueAfter:
		return true
	case interface{ Unwrap() error }:
		return isRequest(e.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !isRequest(err) })
	}
	return false
}
