// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

var (
	_ reconcile.Reconciler = (*Controller[resource.Object])(nil)
	_ validation.Validator = (*Controller[resource.Object])(nil)
)

// Controller calls handlers for what happens to the resources of a kind. It is a [reconcilers.ResourceReconciler] that
// also tells its handlers of resources that are gone.
//
// There is one request for each resource, however much has happened to it, and one request at a time for each. All
// caches are filled before the first.
type Controller[Type resource.Object] struct {
	// Name identifies the controller in logs and metrics. When set it has to be unique within a process. Defaults to the
	// lower-case kind.
	Name string

	// Type is the kind of the resources. Defaults to the type parameter; required for interfaces, unstructured objects and
	// bare metadata.
	Type Type

	// Handlers are called for every resource, in order, none stopping those that follow, see [FanOut]. They are made by
	// [WatcherReconciler], [AsSubReconciler], [OpinionatedWatcher] and [OpinionatedReconciler]; any other sub reconciler
	// works too, but is not told of resources that are gone. Required.
	Handlers []reconcilers.SubReconciler[Type]

	// SkipStatusUpdate leaves the status alone, for kinds whose status belongs to another controller: nothing is written
	// to it, and its observedGeneration is no mark of what was handled. Defaults to false.
	SkipStatusUpdate bool

	// StatusEvents emits an event for each status that is written, see [reconcilers.ResourceReconciler]. Defaults to
	// false.
	StatusEvents bool

	// MaxConcurrentReconciles is how many resources are handled at the same time. Defaults to that of the manager, which
	// is 1 unless set.
	MaxConcurrentReconciles int

	// SetupForOptions are options for watching the resources, predicates for example. Optional.
	SetupForOptions []builder.ForOption

	// Setup changes the controller that is being built. Optional.
	Setup func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error

	// Config reaches the cluster of the resources, see [reconcilers.NewConfig]. Required.
	Config reconcilers.Config

	lazyInit sync.Once
	root     *reconcilers.ResourceReconciler[Type]
}

func (c *Controller[T]) init() {
	c.lazyInit.Do(func() {
		handlers := FanOut[T](c.Handlers)
		status := !c.SkipStatusUpdate && handlers.writesStatus()
		handlers.under(place{
			asksAbsent: true, patchesStatus: !c.SkipStatusUpdate &&
				!status, foreignStatus: c.SkipStatusUpdate, gaveUp: handlers.gaveUp,
		})
		c.root = &reconcilers.ResourceReconciler[T]{
			Name:             c.Name,
			Type:             c.Type,
			Setup:            c.setup,
			SetupForOptions:  c.SetupForOptions,
			SkipStatusUpdate: !status,
			StatusEvents:     c.StatusEvents,
			Reconciler:       handlers,
			ReconcileAbsent:  handlers.Absent,
			Config:           c.Config,
		}
	})
}

func (c *Controller[T]) setup(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	if c.MaxConcurrentReconciles > 0 {
		bldr.WithOptions(controller.Options{MaxConcurrentReconciles: c.MaxConcurrentReconciles})
	}
	FanOut[T](c.Handlers).listen(ctx, bldr)
	if c.Setup != nil {
		return c.Setup(ctx, mgr, bldr)
	}
	return nil
}

// SetupWithManager adds the controller to the manager.
func (c *Controller[T]) SetupWithManager(ctx context.Context, mgr reconcilers.Manager) error {
	c.init()
	if err := c.Validate(ctx); err != nil {
		return err
	}
	return c.root.SetupWithManager(ctx, mgr)
}

// Validate checks the required fields and, when ctx asks for recursion, the handlers.
func (c *Controller[T]) Validate(ctx context.Context) error {
	c.init()
	var errs []error
	if len(c.Handlers) == 0 {
		errs = append(errs, fmt.Errorf("Controller %q must define Handlers", c.Name))
	}
	return errors.Join(append(errs, c.root.Validate(ctx))...)
}

// Reconcile handles the resource that the request names. See [reconcilers.ResourceReconciler.Reconcile].
func (c *Controller[T]) Reconcile(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error) {
	c.init()
	return c.root.Reconcile(ctx, req)
}
