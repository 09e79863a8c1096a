// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/engine/step"
)

var _ subReconciler = (*OverrideSetup[client.Object])(nil)

// OverrideSetup runs a sub reconciler but does not set it up, for example to leave out its watches.
type OverrideSetup[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `SkipSetup`.
	Name string

	// Setup is called instead of the setup of Reconciler. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconciler runs as usual but is never set up. Custom reconcilers in it are not validated during setup, because
	// they may require their own setup. At least one of Setup and Reconciler is required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
}

func (r *OverrideSetup[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "SkipSetup"
		}
	})
}

// SetupWithManager validates the reconciler and calls Setup.
func (r *OverrideSetup[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *OverrideSetup[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *OverrideSetup[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *OverrideSetup[T]) describe(d *description) {
	r.init()
	d.is("OverrideSetup", r.Name)
	d.require(r.Setup != nil || r.Reconciler != nil, "must implement at least one of Setup or Reconciler")
	d.setsUp(r.Setup)
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler, inside: setupcheck.NeverSetUp, notSetUp: true})
}

// Reconcile runs Reconciler.
func (r *OverrideSetup[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	if r.Reconciler == nil {
		return Result{}, nil
	}
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.Reconciler.Reconcile)
}
