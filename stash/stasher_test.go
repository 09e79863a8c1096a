// SPDX-License-Identifier: Apache-2.0

package stash_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/stash"
)

func TestStasher(t *testing.T) {
	const key stash.Key = "key"

	type observed struct {
		Has     bool
		OrError string
		Err     error
		OrEmpty string
		Clear   string
	}
	tests := map[string]struct {
		reason string
		stored []any
		want   observed
	}{
		"Missing": {
			reason: "a missing value is an error",
			want:   observed{Err: stash.ErrValueNotFound},
		},
		"Stored": {
			reason: "a value of the type is returned",
			stored: []any{"value"},
			want:   observed{Has: true, OrError: "value", OrEmpty: "value", Clear: "value"},
		},
		"Nil": {
			reason: "a stored nil is the zero value of any type, without error",
			stored: []any{nil},
			want:   observed{Has: true},
		},
		"OtherType": {
			reason: "a value of another type exists but cannot be read",
			stored: []any{42},
			want:   observed{Has: true, Err: stash.ErrValueNotAssignable},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := stash.WithContext(t.Context())
			for _, value := range tt.stored {
				stash.StoreValue(ctx, key, value)
			}
			stasher := stash.New[string](key)

			var got observed
			got.Has = stasher.Has(ctx)
			got.OrError, got.Err = stasher.RetrieveOrError(ctx)
			got.OrEmpty = stasher.RetrieveOrEmpty(ctx)

			var died error
			func() {
				defer func() { died, _ = recover().(error) }()
				if diff := cmp.Diff(tt.want.OrError, stasher.RetrieveOrDie(ctx)); diff != "" {
					t.Errorf("RetrieveOrDie (-want +got):\n%s", diff)
				}
			}()
			if !errors.Is(died, tt.want.Err) {
				t.Errorf("RetrieveOrDie panicked with %v, want %v", died, tt.want.Err)
			}

			got.Clear = stasher.Clear(ctx)
			sameError := cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) || errors.Is(b, a) })
			if diff := cmp.Diff(tt.want, got, sameError); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if stasher.Has(ctx) {
				t.Error("value still exists after Clear")
			}
		})
	}
}

// A missing value is usually a mistake in the order of reconcilers. The error names the value.
func TestStasherErrorsNameTheKey(t *testing.T) {
	ctx := stash.WithContext(t.Context())
	stash.StoreValue(ctx, "theme", 42)
	for key, want := range map[stash.Key]string{
		"page":  `value not found in stash: nothing is stored under "page", store it in a reconciler that runs before`,
		"theme": `value found in stash is not of an assignable type: "theme" holds int, not string`,
	} {
		_, err := stash.New[string](key).RetrieveOrError(ctx)
		if err == nil {
			t.Fatalf("%s: no error", key)
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

func TestStasherStore(t *testing.T) {
	ctx := stash.WithContext(t.Context())
	stasher := stash.New[fmt.Stringer]("key")
	if diff := cmp.Diff(stash.Key("key"), stasher.Key()); diff != "" {
		t.Errorf("Key (-want +got):\n%s", diff)
	}

	stasher.Store(ctx, nil)
	if !stash.HasValue(ctx, "key") {
		t.Error("a nil interface value was not stored")
	}
	got, err := stasher.RetrieveOrError(ctx)
	if got != nil || err != nil {
		t.Errorf("stored nil was returned as %v, error %v", got, err)
	}
}

func TestStashersShareByKey(t *testing.T) {
	ctx := stash.WithContext(t.Context())
	stash.New[int]("key").Store(ctx, 1)
	if got := stash.New[int]("key").RetrieveOrDie(ctx); got != 1 {
		t.Errorf("second stasher of the key read %d, want 1", got)
	}
	if stash.New[int]("other").Has(ctx) {
		t.Error("a stasher sees the value of another key")
	}
}
