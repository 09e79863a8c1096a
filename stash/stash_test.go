// SPDX-License-Identifier: Apache-2.0

package stash_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/stash"
)

func TestValues(t *testing.T) {
	const key stash.Key = "key"

	type observed struct {
		Has      bool
		Retrieve any
		Clear    any
	}
	tests := map[string]struct {
		reason string
		stored []any
		want   observed
	}{
		"Missing": {
			reason: "an unknown key returns nil",
			want:   observed{},
		},
		"Stored": {
			reason: "a value is returned as stored",
			stored: []any{"value"},
			want:   observed{Has: true, Retrieve: "value", Clear: "value"},
		},
		"Nil": {
			reason: "a stored nil differs from a missing value",
			stored: []any{nil},
			want:   observed{Has: true},
		},
		"Replaced": {
			reason: "the last value stored wins, whatever the type of the first",
			stored: []any{"first", 2},
			want:   observed{Has: true, Retrieve: 2, Clear: 2},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := stash.WithContext(t.Context())
			for _, value := range tt.stored {
				stash.StoreValue(ctx, key, value)
			}
			got := observed{
				Has:      stash.HasValue(ctx, key),
				Retrieve: stash.RetrieveValue(ctx, key),
				Clear:    stash.ClearValue(ctx, key),
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if stash.HasValue(ctx, key) {
				t.Error("value still exists after ClearValue")
			}
		})
	}
}

func TestWithContext(t *testing.T) {
	const key stash.Key = "key"
	type other struct{}

	outer := stash.WithContext(t.Context())
	derived := context.WithValue(outer, other{}, true)
	stash.StoreValue(derived, key, "outer")
	if diff := cmp.Diff("outer", stash.RetrieveValue(outer, key)); diff != "" {
		t.Errorf("a value stored through a derived context is not visible in the stash (-want +got):\n%s", diff)
	}

	inner := stash.WithContext(derived)
	if stash.HasValue(inner, key) {
		t.Error("a nested stash shows the values of the outer stash")
	}
	stash.StoreValue(inner, key, "inner")
	if diff := cmp.Diff("outer", stash.RetrieveValue(outer, key)); diff != "" {
		t.Errorf("a nested stash changed the outer stash (-want +got):\n%s", diff)
	}
}

func TestKeysAreIndependent(t *testing.T) {
	ctx := stash.WithContext(t.Context())
	stash.StoreValue(ctx, "a", 1)
	stash.StoreValue(ctx, "b", 2)
	stash.ClearValue(ctx, "a")
	if diff := cmp.Diff(2, stash.RetrieveValue(ctx, "b")); diff != "" {
		t.Errorf("clearing one key changed another (-want +got):\n%s", diff)
	}
}

func TestNotConfigured(t *testing.T) {
	const want = "context not configured for stashing, call `ctx = WithContext(ctx)` before use"
	stasher := stash.New[string]("key")

	tests := map[string]func(ctx context.Context){
		"StoreValue":      func(ctx context.Context) { stash.StoreValue(ctx, "key", "value") },
		"HasValue":        func(ctx context.Context) { stash.HasValue(ctx, "key") },
		"RetrieveValue":   func(ctx context.Context) { stash.RetrieveValue(ctx, "key") },
		"ClearValue":      func(ctx context.Context) { stash.ClearValue(ctx, "key") },
		"Store":           func(ctx context.Context) { stasher.Store(ctx, "value") },
		"Has":             func(ctx context.Context) { stasher.Has(ctx) },
		"Clear":           func(ctx context.Context) { stasher.Clear(ctx) },
		"RetrieveOrDie":   func(ctx context.Context) { stasher.RetrieveOrDie(ctx) },
		"RetrieveOrEmpty": func(ctx context.Context) { stasher.RetrieveOrEmpty(ctx) },
		"RetrieveOrError": func(ctx context.Context) { _, _ = stasher.RetrieveOrError(ctx) },
	}
	for name, operation := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				err, ok := recover().(error)
				if !ok {
					t.Fatal("did not panic with an error")
				}
				if diff := cmp.Diff(want, err.Error()); diff != "" {
					t.Errorf("panic (-want +got):\n%s", diff)
				}
			}()
			operation(t.Context())
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	const workers, rounds = 8, 200
	ctx := stash.WithContext(t.Context())
	shared := stash.New[int]("shared")

	var wg sync.WaitGroup
	failures := make(chan error, workers)
	for w := range workers {
		own := stash.New[int](stash.Key(fmt.Sprintf("worker-%d", w)))
		wg.Go(func() {
			for i := range rounds {
				own.Store(ctx, i)
				shared.Store(ctx, i)
				shared.RetrieveOrEmpty(ctx)
				shared.Clear(ctx)
				if got := own.RetrieveOrDie(ctx); got != i {
					failures <- fmt.Errorf("worker %d stored %d and read %d", w, i, got)
					return
				}
			}
		})
	}
	wg.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	ctx := stash.WithContext(t.Context())
	stasher := stash.New[*int]("key")
	stasher.Store(ctx, new(1))

	tests := map[string]func(){
		"HasValue":        func() { stash.HasValue(ctx, "key") },
		"RetrieveValue":   func() { stash.RetrieveValue(ctx, "key") },
		"RetrieveOrDie":   func() { stasher.RetrieveOrDie(ctx) },
		"RetrieveOrError": func() { _, _ = stasher.RetrieveOrError(ctx) },
	}
	for name, lookup := range tests {
		t.Run(name, func(t *testing.T) {
			if got := testing.AllocsPerRun(100, lookup); got != 0 {
				t.Errorf("%v allocations per lookup, want none", got)
			}
		})
	}
}

func TestErrorTexts(t *testing.T) {
	tests := map[string]error{
		"value not found in stash":                          stash.ErrValueNotFound,
		"value found in stash is not of an assignable type": stash.ErrValueNotAssignable,
	}
	for want, err := range tests {
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("text (-want +got):\n%s", diff)
		}
	}
	if errors.Is(stash.ErrValueNotFound, stash.ErrValueNotAssignable) {
		t.Error("ErrValueNotFound matches ErrValueNotAssignable")
	}
}
