// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"sync"
	"time"
	"weak"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/text/panics"
)

// Controller makes the controller that a builder will build pass its events to the hub of the manager. It returns the
// builder:
//
//	err := observe.Controller(ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{})).Complete(reconciler)
//
// All watches and sources of the controller are observed, including those that are added later. The events show causes
// and results. They also show the calls of the reconciler, and its loops, if it uses a client of [Client]. Controllers
// of package reconcilers and of package operator call this function themselves.
func Controller(bldr *builder.Builder) *builder.Builder {
	// If controller-runtime has changed, the controller works, but is not observed.
	ctrlfields.WrapNewController(bldr, func(create ctrlfields.NewController) ctrlfields.NewController {
		return func(name string, mgr manager.Manager, options controller.Options) (controller.Controller, error) {
			o := &controllerObserver{hub: Of(mgr), name: name, scheme: mgr.GetScheme(), kind: kindOf(mgr, bldr)}
			o.mgr, o.log = mgr, mgr.GetLogger().WithValues("controller", name)
			o.reconciler, options.Reconciler = options.Reconciler, o
			if o.cluster = ClusterOf(mgr); o.cluster == "" {
				observeWarnings(mgr) // the client of another cluster is in use
				if err := o.watchStart(); err != nil {
					return nil, err
				}
			}
			created, err := create(name, mgr, options)
			if err != nil {
				return nil, err
			}
			o.hub.controllers.Store(fullName(name, o.cluster), observed{name, o.cluster, weak.Make(o)})
			return &observedController{Controller: created, observer: o}, nil
		}
	})
	return bldr
}

// kindOf returns the kind of the objects that a controller reconciles, or the empty kind.
func kindOf(mgr manager.Manager, bldr *builder.Builder) schema.GroupVersionKind {
	input, _ := ctrlfields.ForInput(bldr)
	if nilcheck.IsNilPointer(input.Object) {
		return schema.GroupVersionKind{}
	}
	gvk, _ := apiutil.GVKForObject(input.Object, mgr.GetScheme())
	return gvk
}

// observedController is a controller whose sources record causes.
type observedController struct {
	controller.Controller
	observer *controllerObserver
}

func (c *observedController) Watch(src source.Source) error {
	return c.Controller.Watch(c.observer.source(src))
}

// controllerObserver observes one controller. It is also its reconciler.
type controllerObserver struct {
	hub        *Hub
	name       string
	cluster    string
	kind       schema.GroupVersionKind
	scheme     *runtime.Scheme
	reconciler reconcile.Reconciler
	pending    pending
	loops      loops
	log        logr.Logger
	mgr        manager.Manager
	watchdog   watchdog
	// otherCaches holds the caches of its sources that are not the cache of the manager, by their address.
	otherCaches sync.Map

	announcedMu sync.Mutex
	// announced holds the kinds and fields of [TakeDropped].
	announced map[string]bool
}

// Unwrap returns the reconciler of the controller.
func (c *controllerObserver) Unwrap() reconcile.Reconciler { return c.reconciler }

// Reconcile calls the reconciler of the controller.
func (c *controllerObserver) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := c.observe(ctx, req)
	if errors.Is(ctx.Err(), context.Canceled) && errors.Is(err, context.Canceled) {
		return reconcile.Result{}, nil // the manager stops, and the controller would log it as an error
	}
	return result, err
}

func (c *controllerObserver) observe(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if !c.hub.Enabled() {
		c.pending.forget(req)
		return c.reconciler.Reconcile(ctx, req)
	}
	started := time.Now()
	causes, omitted := c.pending.take(req, started)
	run := &running{controller: c, Run: Run{
		ID: string(controller.ReconcileIDFromContext(ctx)), Controller: c.name, Kind: c.kind, Object: req.NamespacedName,
		Started: started, Causes: causes, OmittedCauses: omitted,
	}}
	if c.cluster != "" {
		run.SetCluster(c.cluster)
	}
	run.started.Run = &run.Run
	run.Observe(ctx, run)
	c.loops.enter(req, run)
	c.watchdog.started(c, run)
	ctx = c.hub.Observe(run, &run.started)
	finished := &run.finished
	finished.Run, finished.Panicked = &run.Run, true
	defer func() {
		panicked := recover()
		if panicked != nil {
			finished.Panic = panics.Text(panicked)
			defer panic(panicked) // the stack is still the stack of the first panic, below this function
		}
		c.watchdog.ended(run)
		run.finish()
		c.pending.ended(req, &run.Run, finished.Err != nil || finished.Panicked, c.next(run, finished))
		c.hub.Observe(ctx, finished)
	}()
	finished.Result, finished.Err = c.reconciler.Reconcile(ctx, req)
	finished.Panicked = false
	c.loops.leave(ctx, req, run, finished)
	return finished.Result, finished.Err
}

// next returns the cause of the reconcile that a finished one requests, or nil.
func (c *controllerObserver) next(run *running, finished *ReconcileFinished) *Cause {
	cause := Cause{At: time.Now(), Count: 1}
	after := finished.Result.RequeueAfter
	switch {
	case finished.Err != nil && errors.Is(finished.Err, reconcile.TerminalError(nil)):
		return nil
	case finished.Err != nil || finished.Panicked:
		cause.Type, cause.Err = CauseRetry, finished.Err
	case after > 0:
		cause.Type, cause.After = run.delay(), after
	case finished.Result.Requeue: //nolint:staticcheck // reconcilers still set it
		cause.Type = CauseRetry
	default:
		return nil
	}
	return new(cause)
}
