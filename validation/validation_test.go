// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"context"
	"testing"

	"trueup.dev/validation"
)

func TestIsRecursive(t *testing.T) {
	type other struct{}
	recursive := validation.WithRecursive(context.Background())

	tests := map[string]struct {
		reason string
		ctx    context.Context
		want   bool
	}{
		"Background": {
			reason: "nested values are not validated by default",
			ctx:    context.Background(),
			want:   false,
		},
		"WithRecursive": {
			reason: "requested",
			ctx:    recursive,
			want:   true,
		},
		"Derived": {
			reason: "the request reaches nested values through derived contexts",
			ctx:    context.WithValue(recursive, other{}, 1),
			want:   true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := validation.IsRecursive(tt.ctx); got != tt.want {
				t.Errorf("%s: got %t, want %t", tt.reason, got, tt.want)
			}
		})
	}
}
