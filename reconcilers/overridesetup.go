// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/engine/step"
	"trueup.dev/validation"
)

var (
	_ SubReconciler[client.Object] = (*OverrideSetup[client.Object])(nil)
	_ validation.Validator         = (*OverrideSetup[client.Object])(nil)
)

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
	r.init()
	return setUp(ctx, mgr, bldr, r.Name, r.Validate, r.Setup)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *OverrideSetup[T]) Validate(ctx context.Context) error {
	r.init()
	problems := problems{}
	if r.Setup == nil && r.Reconciler == nil {
		problems.add("OverrideSetup %q must implement at least one of Setup or Reconciler", r.Name)
	}
	problems.nested(setupcheck.NeverSetUp(ctx), r.Reconciler, "OverrideSetup %q must have a valid Reconciler", r.Name)
	return problems.err()
}

// Reconcile runs Reconciler.
func (r *OverrideSetup[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	if r.Reconciler == nil {
		return Result{}, nil
	}
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.Reconciler.Reconcile)
}
