// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

type fieldOwnerKey struct{}

// WithFieldOwner returns a context with which the client of a [Cluster] creates, updates and patches objects as this
// field owner, unless the caller names another one. An empty owner changes nothing.
func WithFieldOwner(ctx context.Context, owner string) context.Context {
	if owner == "" {
		return ctx
	}
	return context.WithValue(ctx, fieldOwnerKey{}, client.FieldOwner(owner))
}

// withOwner puts the field owner of the context before the options, which replace it.
func withOwner[O any](ctx context.Context, opts []O) []O {
	owner := ctx.Value(fieldOwnerKey{})
	if option, ok := owner.(O); ok {
		return slices.Insert(slices.Clone(opts), 0, option)
	}
	return opts
}
