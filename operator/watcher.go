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

// TypedWatcher handles what happens to resources of a kind in one function for each sort of event. Calls for one object
// never overlap. Objects are copies that the watcher may change.
//
// Only what has become of an object counts, not every step on the way: changes that follow each other while a call is
// under way lead to one more call.
type TypedWatcher[T resource.Object] interface {
	// Add is called for an object that has not been handled before.
	Add(ctx context.Context, object T) error
	// Update is called for an object that has changed since it was last handled with success, when it was as in previous.
	Update(ctx context.Context, previous, object T) error
	// Delete is called once for an object that is gone, or that is only kept by its finalizer.
	Delete(ctx context.Context, object T) error
}

// Syncer is a [TypedWatcher] that wants to know which objects it may have handled already.
type Syncer[T resource.Object] interface {
	// Sync is called for an object that was handled before, by an earlier process perhaps, and may have changed since.
	// Without it Add is called, or Update when the process knows the previous state.
	Sync(ctx context.Context, object T) error
}

// ResourceWatcher is a [TypedWatcher] for objects of any type.
type ResourceWatcher = TypedWatcher[resource.Object]

// Watcher is the short name of [ResourceWatcher].
type Watcher = ResourceWatcher

// Untyped makes a watcher for objects of any type into one for a Go type, with its Sync if it has one.
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

// Wrapped is for those who look for handlers that are nil.
func (w untyped[T]) Wrapped() any { return w.watcher }

type untypedSyncer[T resource.Object] struct{ untyped[T] }

func (w untypedSyncer[T]) Sync(ctx context.Context, object T) error {
	return w.watcher.(Syncer[resource.Object]).Sync(ctx, object)
}

// WidenWatcher makes a watcher for a Go type one for objects of any type, as an App has them, with its Sync if it has
// one. Objects of another type are a [CannotCastError].
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

// Wrapped is for those who look for handlers that are nil.
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

// RequeueAfter returns an error by which a watcher asks to be called again for the same after some time. It is no
// failure: nothing is logged or counted, and the retry policy is not asked. Joined to another error, that one is a
// failure, and is retried after this time instead of the time of the retry policy.
func RequeueAfter(d time.Duration) error {
	return requeueAfter(d)
}

type requeueAfter time.Duration

func (d requeueAfter) Error() string {
	return fmt.Sprintf("call again after %s", time.Duration(d))
}

// failedUntil is a failure with the time after which its handler wants to be called again.
type failedUntil struct {
	after requeueAfter
	cause error
}

func (e failedUntil) Error() string { return e.cause.Error() }

func (e failedUntil) Unwrap() []error { return []error{e.cause, e.after} }

// asksAgain returns the time that a handler asks for by its error, and whether it has failed as well: the request is
// joined to another error then.
func asksAgain(err error) (after time.Duration, asked, failed bool) {
	var d requeueAfter
	if !errors.As(err, &d) {
		return 0, false, err != nil
	}
	return time.Duration(d), true, !isRequest(err)
}

// isRequest reports whether an error consists of nothing but requests to be called again.
func isRequest(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it is the chain that is followed here
	case requeueAfter:
		return true
	case interface{ Unwrap() error }:
		return isRequest(e.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !isRequest(err) })
	}
	return false
}
