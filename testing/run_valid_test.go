// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"testing"
)

// listOf is an error with a text of its own that lists others.
type listOf struct {
	text   string
	errors []error
}

func (l listOf) Error() string   { return l.text }
func (l listOf) Unwrap() []error { return l.errors }

func TestAllOf(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"Single":      {err: a, want: "a"},
		"First":       {err: listOf{"a", []error{a, b}}, want: "a\nb"},
		"Joined":      {err: errors.Join(a, b), want: "a\nb"},
		"Wrapped":     {err: fmt.Errorf("spec: %w", errors.Join(a, b)), want: "spec: a\nb"},
		"SeveralVerb": {err: fmt.Errorf("neither %w nor %w", a, b), want: "neither a nor b"},
		"EmptyList":   {err: listOf{"invalid", nil}, want: "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := allOf(tt.err); got == nil || got.Error() != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if err := allOf(nil); err != nil {
		t.Errorf("nil becomes %q", err)
	}
}
