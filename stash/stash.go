// SPDX-License-Identifier: Apache-2.0

package stash

import (
	"context"
	"errors"

	"trueup.dev/internal/engine/carried"
)

// Key names a value in the stash. All reconcilers of a request share the keys, so choose a name that describes the
// value.
type Key string

var errNotConfigured = errors.New("context not configured for stashing, call `ctx = WithContext(ctx)` before use")

// WithContext returns a context with a new, empty stash. A stash that was
// already on ctx is hidden by the new one, not copied into it.
func WithContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, carried.StashKey{}, &carried.Stash{})
}

// Configured reports whether ctx has a stash.
func Configured(ctx context.Context) bool {
	_, ok := ctx.Value(carried.StashKey{}).(*carried.Stash)
	return ok
}

// StoreValue stores value under key, replacing a previous value. The value is visible through every context that shares
// this stash. A nil value is stored like any other. It panics if ctx has no stash.
func StoreValue(ctx context.Context, key Key, value interface{}) {
	mustFromContext(ctx).Store(string(key), value)
}

// HasValue reports whether a value, nil included, is stored under key. It panics if ctx has no stash.
func HasValue(ctx context.Context, key Key) bool {
	_, ok := lookup(ctx, key)
	return ok
}

// RetrieveValue returns the value stored under key, or nil if no value is stored. Use [HasValue] to distinguish a
// stored nil from a missing value. It panics if ctx has no stash.
func RetrieveValue(ctx context.Context, key Key) interface{} {
	value, _ := lookup(ctx, key)
	return value
}

// ClearValue removes the value stored under key and returns it, or nil if no value was stored. It panics if ctx has no
// stash.
func ClearValue(ctx context.Context, key Key) interface{} {
	return mustFromContext(ctx).Take(string(key))
}

func lookup(ctx context.Context, key Key) (any, bool) {
	return mustFromContext(ctx).Load(string(key))
}

func mustFromContext(ctx context.Context) *carried.Stash {
	s, ok := ctx.Value(carried.StashKey{}).(*carried.Stash)
	if !ok {
		panic(errNotConfigured)
	}
	return s
}
