// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strconv"

	"trueup.dev/graph"
)

// DescribeTo implements [graph.Describer].
func (c *Controller[T]) DescribeTo(n *graph.Node) {
	c.init()
	c.root.DescribeTo(n)
	if !c.SkipStatusUpdate {
		n.Status() // handlers that copy the resource have conditions and an observedGeneration, too
	}
}

// DescribeTo implements [graph.Describer].
func (r FanOut[T]) DescribeTo(n *graph.Node) {
	for i, handler := range r {
		n.NestStep(strconv.Itoa(i), handler)
	}
}

// DescribeTo implements [graph.Describer].
func (r *Opinionated[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.Finalizer(r.Finalizer)
	n.Finalizer(r.InProgressFinalizer)
	n.Nest("Handler", r.Handler)
}

// DescribeTo implements [graph.Describer]. A watcher or a Reconciler is nested and may describe itself.
func (r *WithEdge[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	if leaf, ok := r.Reconciler.(*leaf[T]); ok {
		n.Nest("Handler", unwrapped(leaf.handler))
		return
	}
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *widened[T]) DescribeTo(n *graph.Node) { n.Nest("", r.reconciler) }

// DescribeTo implements [graph.Describer].
func (r *subReconciler[T]) DescribeTo(n *graph.Node) { n.Nest("", r.SubReconciler) }

// unwrapped returns the handler of the user, without the adapters of this package.
func unwrapped(handler any) any {
	for {
		wrapper, ok := handler.(interface{ Wrapped() any })
		if !ok {
			return handler
		}
		handler = wrapper.Wrapped()
	}
}
