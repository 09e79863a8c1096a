// SPDX-License-Identifier: Apache-2.0

package stash

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

var (
	// ErrValueNotFound is returned if no value is stored under the key.
	ErrValueNotFound = errors.New("value not found in stash")

	// ErrValueNotAssignable is returned if the value stored under the key has another type than the [Stasher] that reads
	// it.
	ErrValueNotAssignable = errors.New("value found in stash is not of an assignable type")
)

// Stasher stores and retrieves one value of type T. It has no state, because the context holds the values. Declare it
// once, as a package variable, and use it from any goroutine.
//
// Every method but Key panics if the context has no stash, see [WithContext].
type Stasher[T any] interface {
	// Key returns the key under which the value is stored.
	Key() Key

	// Store stores the value, replacing a previous value.
	Store(ctx context.Context, value T)

	// Clear removes the value and returns it. It returns the zero value if no value was stored or the removed value is not
	// a T.
	Clear(ctx context.Context) T

	// Has reports whether a value is stored, nil and values of other types
	// included.
	Has(ctx context.Context) bool

	// RetrieveOrDie returns the stored value. It panics with the error that
	// RetrieveOrError would return.
	RetrieveOrDie(ctx context.Context) T

	// RetrieveOrError returns the stored value. The error names the key. It wraps ErrValueNotFound if no value is stored,
	// and ErrValueNotAssignable if the stored value is not a T; the value is then zero. A stored nil is returned as the
	// zero value, without error.
	RetrieveOrError(ctx context.Context) (T, error)

	// RetrieveOrEmpty returns the stored value, or the zero value where
	// RetrieveOrError would return an error.
	RetrieveOrEmpty(ctx context.Context) T
}

// New returns a [Stasher] for the value stored under key. Stashers with the
// same key share the value, whatever their types.
func New[T any](key Key) Stasher[T] {
	return stasher[T]{key: key}
}

type stasher[T any] struct {
	key Key
}

func (s stasher[T]) Key() Key {
	return s.key
}

func (s stasher[T]) Store(ctx context.Context, value T) {
	StoreValue(ctx, s.key, value)
}

func (s stasher[T]) Clear(ctx context.Context) T {
	value, _ := ClearValue(ctx, s.key).(T)
	return value
}

func (s stasher[T]) Has(ctx context.Context) bool {
	return HasValue(ctx, s.key)
}

func (s stasher[T]) RetrieveOrDie(ctx context.Context) T {
	value, err := s.RetrieveOrError(ctx)
	if err != nil {
		panic(err)
	}
	return value
}

func (s stasher[T]) RetrieveOrError(ctx context.Context) (T, error) {
	value, err := s.retrieve(ctx)
	switch {
	case errors.Is(err, ErrValueNotFound):
		err = fmt.Errorf("%w: nothing is stored under %q, store it in a reconciler that runs before", err, s.key)
	case errors.Is(err, ErrValueNotAssignable):
		err = fmt.Errorf("%w: %q holds %T, not %v", err, s.key, RetrieveValue(ctx, s.key), reflect.TypeFor[T]())
	}
	return value, err
}

func (s stasher[T]) RetrieveOrEmpty(ctx context.Context) T {
	value, _ := s.retrieve(ctx)
	return value
}

func (s stasher[T]) retrieve(ctx context.Context) (T, error) {
	var empty T
	value, ok := lookup(ctx, s.key)
	if !ok {
		return empty, ErrValueNotFound
	}
	if value == nil {
		return empty, nil
	}
	typed, ok := value.(T)
	if !ok {
		return empty, ErrValueNotAssignable
	}
	return typed, nil
}
