// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"

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
