// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/objects/servedstatus"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

var (
	_ reconcile.Reconciler = (*Controller[resource.Object])(nil)
	_ validation.Validator = (*Controller[resource.Object])(nil)
)

// Controller calls handlers when resources of a kind change. It is a [reconcilers.ResourceReconciler] that also calls
// its handlers for resources that no longer exist.
//
// All events of a resource lead to one request, and requests for one resource never overlap. All caches are synced
// before the first request.
type Controller[Type resource.Object] struct {
	// Name identifies the controller in logs and metrics. A name must be unique within a process. Defaults to the
	// lower-case kind.
	Name string

	// Type is the kind of the resources. Defaults to the type parameter; required for interfaces, unstructured objects
	// and partial object metadata.
	Type Type

	// Handlers are called for every resource, in order. A failure of one handler does not stop those that follow, see
	// [FanOut]. Use [WatcherReconciler], [AsSubReconciler], [OpinionatedWatcher] or [NewOpinionated] to make
	// them. Any other subreconciler works too, but is not called for resources that no longer exist. Required.
	Handlers []reconcilers.SubReconciler[Type]

	// WhileServed makes the controller run only while the API server serves the kind, see
	// [reconcilers.ResourceReconciler]. Set it for an informer of [trueup.dev/informer.WhileServed]. Defaults to false.
	WhileServed bool

	// SkipStatusUpdate is for kinds whose status belongs to another controller. The controller does not write the
	// status, and does not use its observedGeneration to determine what was handled. Defaults to false.
	SkipStatusUpdate bool

	// StatusEvents emits an event for each status update, see [reconcilers.ResourceReconciler]. Defaults to false.
	StatusEvents bool

	// MaxConcurrentReconciles is the maximum number of resources that are handled at the same time. Defaults to the
	// value of the manager, which is 1 unless set.
	MaxConcurrentReconciles int

	// SetupForOptions are options for watching the resources, for example predicates. Optional.
	SetupForOptions []builder.ForOption

	// Setup configures the builder of the controller. Optional.
	Setup func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error

	// Config reaches the cluster of the resources, see [reconcilers.NewConfig]. Required.
	Config reconcilers.Config

	// skipNameValidation allows several controllers of one name in a process. If it is nil, the manager decides.
	skipNameValidation *bool

	lazyInit sync.Once
	root     *reconcilers.ResourceReconciler[Type]
}

func (c *Controller[T]) init() {
	c.lazyInit.Do(func() {
		handlers := FanOut[T](c.Handlers)
		status := !c.SkipStatusUpdate && handlers.writesStatus()
		handlers.under(place{
			handlesAbsent: true, patchesStatus: !c.SkipStatusUpdate &&
				!status, foreignStatus: c.SkipStatusUpdate, gaveUp: handlers.gaveUp,
		})
		c.root = &reconcilers.ResourceReconciler[T]{
			Name:             c.Name,
			Type:             c.Type,
			Setup:            c.setup,
			SetupForOptions:  c.SetupForOptions,
			WhileServed:      c.WhileServed,
			SkipStatusUpdate: !status,
			StatusEvents:     c.StatusEvents,
			Reconciler:       handlers,
			ReconcileAbsent:  handlers.Absent,
			Config:           c.Config,
		}
	})
}

func (c *Controller[T]) setup(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	if c.MaxConcurrentReconciles > 0 || c.skipNameValidation != nil {
		bldr.WithOptions(controller.Options{
			MaxConcurrentReconciles: max(c.MaxConcurrentReconciles, 0), SkipNameValidation: c.skipNameValidation,
		})
	}
	FanOut[T](c.Handlers).listen(ctx, bldr)
	c.checkStatus(ctx, bldr)
	if c.Setup != nil {
		return c.Setup(ctx, mgr, bldr)
	}
	return nil
}

// checkStatus makes the controller log at its start if the API server does not serve the status to which its handlers
// write the observedGeneration. The root does this if it writes the status.
func (c *Controller[T]) checkStatus(ctx context.Context, bldr *reconcilers.Builder) {
	observes := slices.ContainsFunc(c.Handlers, func(sub reconcilers.SubReconciler[T]) bool {
		o, ok := sub.(interface{ observed(resource T) *int64 })
		return ok && o.observed(c.root.Type) != nil
	})
	if c.SkipStatusUpdate || !c.root.SkipStatusUpdate || !observes || c.Config.Discovery == nil {
		return
	}
	if gvk, err := c.Config.GroupVersionKindFor(c.root.Type); err == nil {
		bldr.WatchesRawSource(&servedstatus.Source{
			Discovery: c.Config.Discovery, Kind: gvk, Log: logr.FromContextOrDiscard(ctx),
		})
	}
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
