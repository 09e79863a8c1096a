// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/call"
)

// overlayClient is the client that reconcilers hold. It reads from and writes to the overlay of the current plan.
type overlayClient struct {
	client.Client
	indexes *indexes
	current atomic.Pointer[overlay]
}

func newOverlayClient(cluster client.Client, indexes *indexes) *overlayClient {
	c := &overlayClient{indexes: indexes}
	c.Client = call.NewClient(cluster, func(ctx context.Context, made call.Call) error {
		return c.current.Load().do(ctx, c.indexes, made)
	})
	return c
}

func (o *overlay) do(ctx context.Context, indexes *indexes, c call.Call) error {
	switch {
	case c.OfSubresource() && c.Verb == call.Get:
		return o.getSubresource(ctx, &c)
	case c.Verb == call.Get:
		return o.get(ctx, &c)
	case c.Verb == call.List:
		return o.list(ctx, indexes, c.List, c.ListOptions...)
	case c.Verb == call.DeleteAllOf:
		return o.deleteAll(ctx, indexes, &c)
	case c.Verb == call.Apply:
		config, err := newApplied(c.Config)
		if err != nil {
			return err
		}
		return o.write(ctx, request{c, config})
	}
	return o.write(ctx, request{c, c.Object})
}
