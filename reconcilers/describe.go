// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
)

// The methods DescribeTo describe each reconciler for package graph. The permissions are those of the RBAC sections in
// the comments of the types.

// describe describes what all roots share.
func (r root) describe(n *graph.Node, w *watched) {
	n.Root(schemeOf(r.config), r.resourceType, w.registered())
	n.Step(r.name)
	n.ReadsResource()
	n.Events()
}

// schemeOf returns nil for a config without a client.
func schemeOf(config Config) *runtime.Scheme {
	if config.Client == nil {
		return nil
	}
	return config.Scheme()
}

// DescribeTo implements [graph.Describer].
func (r *ResourceReconciler[T]) DescribeTo(n *graph.Node) {
	r.init()
	r.root().describe(n, &r.watched)
	if !r.SkipStatusUpdate {
		n.Status()
	}
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *AggregateReconciler[T]) DescribeTo(n *graph.Node) {
	r.init()
	r.root().describe(n, &r.watched)
	n.WritesKind(r.Type)
	n.Nest("Reconciler", r.Reconciler)
	nestManager(n, "AggregateObjectManager", r.AggregateObjectManager)
}

// DescribeTo implements [graph.Describer].
func (r *AdmissionWebhookAdapter[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Root(schemeOf(r.Config), r.Type, nil)
	n.SetUp = true // reconcilers below a webhook are not set up
	n.Step(r.Name)
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r Sequence[T]) DescribeTo(n *graph.Node) { nestEach(n, r) }

// DescribeTo implements [graph.Describer].
func (r Always[T]) DescribeTo(n *graph.Node) { nestEach(n, r) }

func nestEach[T client.Object](n *graph.Node, list []SubReconciler[T]) {
	for i, reconciler := range list {
		n.NestStep(strconv.Itoa(i), reconciler)
	}
}

// DescribeTo implements [graph.Describer].
func (r *Steps[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.Finalizer(r.Finalizer)
	for _, s := range r.Steps {
		n.NestStep(s.Name, s.Reconciler)
	}
}

// DescribeTo implements [graph.Describer].
func (r *IfThen[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.NestStep("Then", r.Then)
	n.NestStep("Else", r.Else)
}

// DescribeTo implements [graph.Describer].
func (r *While[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.NestStep("*", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *ForEach[T, I]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.NestStep("*", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *TryCatch[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.NestStep("Try", r.Try)
	n.NestStep("Finally", r.Finally)
}

// DescribeTo implements [graph.Describer].
func (r *Advice[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *Retry[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *Timeout[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *RateLimit[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *Periodic[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *Paused[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *OverrideSetup[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *CastResource[T, CT]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *WithConfig[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.NestWithConfig("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *WithFinalizer[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.Finalizer(r.Finalizer)
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *Prune[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.PatchesResource()
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer].
func (r *SuppressTransientErrors[T, LT]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	n.ReadsResource()
	n.Nest("Reconciler", r.Reconciler)
}

// DescribeTo implements [graph.Describer]. It calls Describe.
func (r *SyncReconciler[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	if r.Describe != nil {
		r.Describe(n)
	}
}

// DescribeTo implements [graph.Describer].
func (r *ChildReconciler[T, CT, CLT]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	r.children.describe(n, "")
}

// DescribeTo implements [graph.Describer].
func (r *ChildSetReconciler[T, CT, CLT]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	r.children.describe(n, r.Finalizer)
}

func (c *children[T, CT]) describe(n *graph.Node, finalizer string) {
	if c.skipOwnerReference {
		n.WritesKind(c.childType)
	} else {
		n.OwnsKind(c.childType)
	}
	if c.adopts != nil || c.releases != nil {
		n.Needs(c.childType, "", "patch")
	}
	n.Finalizer(cmp.Or(finalizer, heldFinalizer(c.manager)))
	nestManager(n, "ChildObjectManager", c.manager)
}

// DescribeTo implements [graph.Describer].
func (r *RecreatingObjectManager[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Step(r.Name)
	nestManager(n, "Manager", r.Manager)
}

// nestManager nests an object manager of the user that describes itself.
func nestManager(n *graph.Node, field string, manager any) {
	if describer, ok := manager.(graph.Describer); ok {
		n.Nest(field, describer)
	}
}

// registered returns the function that returns the watches of each reconciler. It returns nil before set-up.
func (w *watched) registered() func(reconciler any) []graph.Watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kinds.Load() == nil {
		return nil
	}
	watches := w.watches
	return func(reconciler any) []graph.Watch {
		if reconciler != nil && !reflect.ValueOf(reconciler).Comparable() {
			return nil
		}
		return watches[reconciler]
	}
}
