// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Edge is what a handler is called for.
type Edge struct {
	// Action is what has happened to the resource.
	Action ReconcileAction
	// Attempt is how often the handler has failed for this before, without a success in between.
	Attempt int
	// InitialList is true when the resource was there before the controller started to watch.
	InitialList bool
}

// EdgeFrom returns what the reconcilers below a [WithEdge] are called for. Elsewhere it is the zero Edge.
func EdgeFrom(ctx context.Context) Edge {
	if c := callFrom(ctx); c != nil {
		return c.edge
	}
	return Edge{}
}

// PreviousFrom returns a copy of the resource as it was when it was last handled with success. There is one when the
// resource was updated or deleted, or is handled again without a change, and the process has handled it before.
func PreviousFrom[T client.Object](ctx context.Context) (T, bool) {
	var none T
	c := callFrom(ctx)
	if c == nil || c.previous == nil {
		return none, false
	}
	previous, ok := c.previous.DeepCopyObject().(T)
	return previous, ok
}

// RetryState returns what the reconcilers below a [WithEdge] have noted to be carried from one attempt to the next.
// They may change the map: it is kept while they fail or ask to be called again, and dropped when they succeed, when
// the resource is replaced by another of the same name, and when its generation changes. It lives in memory only: what
// must not be lost belongs in the status. Elsewhere than below a WithEdge it is nil.
func RetryState(ctx context.Context) map[string]any {
	c := callFrom(ctx)
	if c == nil {
		return nil
	}
	if c.state == nil {
		c.state = map[string]any{}
	}
	return c.state
}

// call is one call of a handler.
type call struct {
	edge     Edge
	previous client.Object
	// state is carried from attempt to attempt.
	state map[string]any
}

type callKey struct{}

func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func (c *call) onto(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}
