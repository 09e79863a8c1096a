// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Edge describes why a handler is called.
type Edge struct {
	// Action is the change of the resource.
	Action ReconcileAction
	// Attempt is the number of failed attempts for this action since the last success.
	Attempt int
	// InitialList reports whether the resource was in the initial list of the cache.
	InitialList bool
}

// EdgeFrom returns the reason why the reconcilers below a [WithEdge] are called. Elsewhere it returns the zero Edge.
func EdgeFrom(ctx context.Context) Edge {
	if c := callFrom(ctx); c != nil {
		return c.edge
	}
	return Edge{}
}

// PreviousFrom returns a copy of the resource in the state that was last handled successfully. It returns false if
// this process has not handled the resource before, or if the action is not an update, a deletion or a resync.
func PreviousFrom[T client.Object](ctx context.Context) (T, bool) {
	var none T
	c := callFrom(ctx)
	if c == nil || c.previous == nil {
		return none, false
	}
	previous, ok := c.previous.DeepCopyObject().(T)
	return previous, ok
}

// RetryState returns a map that the reconcilers below a [WithEdge] can change to carry state from one attempt to the
// next. The map is kept while they fail or ask to be called again. It is dropped after a success, when a new resource
// of the same name replaces the resource, and when the generation changes. The map is only in memory: state that must
// not be lost belongs in the status. Outside of a WithEdge, RetryState returns nil.
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
