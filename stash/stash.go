// SPDX-License-Identifier: Apache-2.0

package stash

import (
	"context"
	"errors"
	"sync"
)

// Key names a value in the stash. All reconcilers of a request share the keys, so choose a name that describes the
// value.
type Key string

var errNotConfigured = errors.New("context not configured for stashing, call `ctx = WithContext(ctx)` before use")

// contextKey is its own type, so that no other package can collide with it. It is empty, so that a lookup does not
// allocate.
type contextKey struct{}

// values is the mutable map behind a context.
type values struct {
	mu    sync.RWMutex
	byKey map[Key]any
}

// WithContext returns a context with a new, empty stash. A stash that was
// already on ctx is hidden by the new one, not copied into it.
func WithContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &values{})
}

// Configured reports whether ctx has a stash.
func Configured(ctx context.Context) bool {
	_, ok := ctx.Value(contextKey{}).(*values)
	return ok
}

// StoreValue stores value under key, replacing a previous value. The value is visible through every context that shares
// this stash. A nil value is stored like any other. It panics if ctx has no stash.
func StoreValue(ctx context.Context, key Key, value interface{}) {
	s := mustFromContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[Key]any{}
	}
	s.byKey[key] = value
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
	s := mustFromContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	value := s.byKey[key]
	delete(s.byKey, key)
	return value
}

func lookup(ctx context.Context, key Key) (any, bool) {
	s := mustFromContext(ctx)
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok := s.byKey[key]
	return value, ok
}

func mustFromContext(ctx context.Context) *values {
	s, ok := ctx.Value(contextKey{}).(*values)
	if !ok {
		panic(errNotConfigured)
	}
	return s
}
