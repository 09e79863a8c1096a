// SPDX-License-Identifier: Apache-2.0

package validation

import "context"

// Validator checks that a value is well formed.
type Validator interface {
	// Validate returns an error that describes every problem, or nil. It checks nested values only if [IsRecursive]
	// returns true.
	Validate(ctx context.Context) error
}

// Defaulter sets defaults.
type Defaulter interface {
	// Default sets empty fields that have a default. It must be idempotent. After an error the value must not be used.
	Default(context.Context) error
}

type recursiveKey struct{}

// WithRecursive returns a context that requests validators to check their nested values as well.
func WithRecursive(ctx context.Context) context.Context {
	return context.WithValue(ctx, recursiveKey{}, true)
}

// IsRecursive reports whether validators must check their nested values. It returns false unless the context comes from
// [WithRecursive].
func IsRecursive(ctx context.Context) bool {
	recursive, _ := ctx.Value(recursiveKey{}).(bool)
	return recursive
}
