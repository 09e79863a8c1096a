// SPDX-License-Identifier: Apache-2.0

package validation

import "context"

// Validator checks that a value is well formed.
type Validator interface {
	// Validate returns an error that describes everything that is wrong, or nil.
	// Values nested in this one are checked only when [IsRecursive] says so.
	Validate(ctx context.Context) error
}

// Defaulter fills in what was left out.
type Defaulter interface {
	// Default sets fields that are empty and have a default. Calling it again
	// changes nothing more. After an error the value must not be used.
	Default(context.Context) error
}

type recursiveKey struct{}

// WithRecursive returns a context that asks validators to check the values
// nested in them as well.
func WithRecursive(ctx context.Context) context.Context {
	return context.WithValue(ctx, recursiveKey{}, true)
}

// IsRecursive reports whether validators shall check the values nested in them.
// It is false unless the context comes from [WithRecursive].
func IsRecursive(ctx context.Context) bool {
	recursive, _ := ctx.Value(recursiveKey{}).(bool)
	return recursive
}
