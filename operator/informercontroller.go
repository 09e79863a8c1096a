// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/informer"
	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// InformerController calls watchers and reconcilers with the events of informers. Informers and handlers that are
// added under the same kind belong together: each handler is called for the objects of each informer. The kind is only
// a name for this group. Use different names to separate two informers for one Kubernetes kind with different
// selectors.
//
// The handlers of a kind are called one after the other, in the order in which they were added, watchers and
// reconcilers alike. A failure of one handler does not stop those that follow: each handler has its own failures and
// retries, see [FanOut]. Handlers are called for every change and for resyncs, except for an [Opinionated] or a
// handler that wraps one: see [AsOpinionated]. A [Controller] has more options; InformerController is a simpler form
// of it.
//
// Informers may be added and removed at any time. Handlers must be added before the informers of their kind run. For a
// kind that the API server may not serve, add an informer of [informer.WhileServed]: its handlers are called while the
// kind is served.
type InformerController struct {
	config InformerControllerConfig

	mu    sync.Mutex
	setUp bool
	// mgr runs informers that are added after set-up, with the values of ctx.
	mgr ctrl.Manager
	ctx context.Context
	// order lists the kinds in the order in which they were added.
	order []string
	kinds map[string]*informedKind
}

// InformerControllerConfig configures an [InformerController].
type InformerControllerConfig struct {
	// Manager runs the controllers, see [InformerController.Run]. Default: a manager for KubeConfig, without leader
	// election and without a metrics server: the metrics are in the registry of controller-runtime.
	Manager ctrl.Manager
	// KubeConfig is the connection to the cluster if Manager is nil.
	KubeConfig *rest.Config
	// Scheme has the Go types of kinds if Manager is nil. Default: the types of Kubernetes.
	Scheme *runtime.Scheme

	// ErrorHandler is called for every failed attempt of a handler, whether it is retried or not. Default: errors are
	// only logged and counted.
	ErrorHandler func(ctx context.Context, err error)
	// RetryPolicy decides when to retry. Default: [DefaultRetryPolicy].
	RetryPolicy RetryPolicy
	// RetryDequeuePolicy decides whether a change replaces a retry. Default: [OpinionatedRetryDequeuePolicy].
	RetryDequeuePolicy RetryDequeuePolicy
	// PreviousState is how much of each object is kept in memory. Default: [PreviousFull]. For a
	// [informer.CustomCache], which keeps objects outside of memory, set a smaller value.
	PreviousState PreviousState
	// SkipStatusUpdate is for kinds whose status belongs to another controller: the status is not written. Default:
	// false, which for example adds a condition when a handler has given up.
	SkipStatusUpdate bool
	// MaxConcurrentReconciles is the maximum number of objects that are handled at the same time, for each informer of
	// a kind. Default: the value of the manager, which is 1 unless set.
	MaxConcurrentReconciles int
	// FairNamespaces makes the namespaces take turns, see [reconcilers.Config]. Default: false.
	FairNamespaces bool
}

// DefaultInformerControllerConfig returns the config with its defaults, without a cluster.
func DefaultInformerControllerConfig() InformerControllerConfig {
	return InformerControllerConfig{RetryPolicy: DefaultRetryPolicy, RetryDequeuePolicy: OpinionatedRetryDequeuePolicy}
}

// informedKind holds the informers and handlers that were added under one name.
type informedKind struct {
	informers []informer.Informer
	handlers  []informedHandler
	// started holds all informers that were ever started, in order: an informer can run only once.
	started []startedInformerOf
}

// startedInformerOf is an informer that runs, or has run.
type startedInformerOf struct {
	informer informer.Informer
	stop     context.CancelFunc
}

// informedHandler is a watcher or a reconciler.
type informedHandler struct {
	handler   any
	isWatcher bool
	// edge returns a new reconciler that calls the handler. Each informer has its own.
	edge func() *WithEdge[resource.Object]
}

// configured returns the reconciler that calls the handler for one informer.
func (h informedHandler) configured(config InformerControllerConfig) reconcilers.SubReconciler[resource.Object] {
	opinionated, ok := AsOpinionated(h.handler)
	var edge *WithEdge[resource.Object]
	if ok {
		if edge = opinionated.Handler; edge == nil {
			return opinionated // validation reports the nil Handler
		}
	} else {
		edge = h.edge()
		edge.Resync, edge.PreviousState = true, config.PreviousState
	}
	if edge.RetryPolicy == nil {
		edge.RetryPolicy = config.RetryPolicy
	}
	if edge.RetryDequeuePolicy == nil {
		edge.RetryDequeuePolicy = config.RetryDequeuePolicy
	}
	if report := config.ErrorHandler; report != nil {
		own := edge.OnError
		edge.OnError = func(ctx context.Context, object resource.Object, err error) {
			if own != nil {
				own(ctx, object, err)
			}
			report(ctx, err)
		}
	}
	if ok {
		return opinionated
	}
	return edge
}

// NewInformerController returns a controller without informers and handlers.
func NewInformerController(config InformerControllerConfig) *InformerController {
	if config.RetryPolicy == nil {
		config.RetryPolicy = DefaultRetryPolicy
	}
	return &InformerController{config: config, kinds: map[string]*informedKind{}}
}

// AddInformer adds an informer for a kind. An informer belongs to one kind of one controller, which starts it. If the
// controller already runs, AddInformer starts the informer at once; the informer then has no readiness check, and the
// kind must have handlers.
func (c *InformerController) AddInformer(informer informer.Informer, kind string) error {
	return c.change(kind, informer, func(k *informedKind) error {
		if c.setUp {
			if err := c.validateAdded(kind, informer); err != nil {
				return err
			}
			if err := c.start(kind, informer, true); err != nil {
				return fmt.Errorf("kind %q: %w", kind, err)
			}
		}
		k.informers = append(k.informers, informer)
		return nil
	})
}

// RemoveInformer reverts AddInformer. If the informer runs, it stops, and so do the handlers of its objects: they are
// not called any more, not even for deletions, and the context of calls in progress is canceled. The informer cannot
// be added again.
func (c *InformerController) RemoveInformer(removed informer.Informer, kind string) error {
	return c.change(kind, removed, func(k *informedKind) error {
		k.informers = slices.DeleteFunc(k.informers, func(other informer.Informer) bool { return isSame(other, removed) })
		for _, started := range k.started {
			if isSame(started.informer, removed) {
				started.stop()
			}
		}
		return nil
	})
}

// AddWatcher adds a watcher for the objects of a kind.
func (c *InformerController) AddWatcher(watcher ResourceWatcher, kind string) error {
	return c.changeHandlers(kind, watcher, func(k *informedKind) {
		k.handlers = append(k.handlers, informedHandler{
			watcher, true, func() *WithEdge[resource.Object] { return WatcherReconciler(watcher) },
		})
	})
}

// RemoveWatcher removes a watcher that was added by AddWatcher, even if it was added several times.
func (c *InformerController) RemoveWatcher(watcher ResourceWatcher, kind string) error {
	return c.changeHandlers(kind, watcher, func(k *informedKind) { k.remove(true, watcher) })
}

// RemoveAllWatchersForResource removes all watchers of a kind.
func (c *InformerController) RemoveAllWatchersForResource(kind string) error {
	return c.changeHandlers(kind, all, func(k *informedKind) { k.remove(true, all) })
}

// AddReconciler adds a reconciler for the objects of a kind.
func (c *InformerController) AddReconciler(reconciler Reconciler, kind string) error {
	return c.changeHandlers(kind, reconciler, func(k *informedKind) {
		k.handlers = append(k.handlers, informedHandler{reconciler, false, func() *WithEdge[resource.Object] {
			return AsSubReconciler[resource.Object](reconciler)
		}})
	})
}

// RemoveReconciler removes a reconciler that was added by AddReconciler, even if it was added several times.
func (c *InformerController) RemoveReconciler(reconciler Reconciler, kind string) error {
	return c.changeHandlers(kind, reconciler, func(k *informedKind) { k.remove(false, reconciler) })
}

// RemoveAllReconcilersForResource removes all reconcilers of a kind.
func (c *InformerController) RemoveAllReconcilersForResource(kind string) error {
	return c.changeHandlers(kind, all, func(k *informedKind) { k.remove(false, all) })
}

// all stands for all handlers.
var all = new(struct{ _ byte })

// isSame compares handlers and informers. Values that are not comparable are never the same: only pointers to them can
// be removed.
func isSame(a, b any) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

func (k *informedKind) remove(watchers bool, which any) {
	k.handlers = slices.DeleteFunc(k.handlers, func(h informedHandler) bool {
		return h.isWatcher == watchers && (which == any(all) || isSame(h.handler, which))
	})
}

// changeHandlers changes the handlers of a kind whose informers do not run yet.
func (c *InformerController) changeHandlers(kind string, what any, do func(k *informedKind)) error {
	return c.change(kind, what, func(k *informedKind) error {
		if len(k.started) > 0 {
			return fmt.Errorf("the handlers of kind %q cannot change after its informers have started", kind)
		}
		do(k)
		return nil
	})
}

// change changes the informers or handlers of a kind. what must not be nil.
func (c *InformerController) change(kind string, what any, do func(k *informedKind) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case kind == "":
		return errors.New("the kind must not be empty")
	case nilcheck.IsNil(what):
		return fmt.Errorf("the informer or handler of kind %q must not be nil", kind)
	}
	if c.kinds[kind] == nil {
		c.kinds[kind] = &informedKind{}
		c.order = append(c.order, kind)
	}
	return do(c.kinds[kind])
}

// Run sets up the controllers and runs the manager, until the context ends or a component fails. If the context ends
// before all informers are synced, Run returns an error that names those informers. To run the manager yourself, call
// SetupWithManager instead.
//
// The manager for KubeConfig has no leader election: every replica calls its handlers. To call handlers in one replica
// only, set a Manager with leader election.
func (c *InformerController) Run(ctx context.Context) error {
	mgr := c.config.Manager
	if mgr == nil {
		if c.config.KubeConfig == nil {
			return errors.New("InformerController must have a Manager or a KubeConfig")
		}
		made, err := ctrl.NewManager(c.config.KubeConfig, ctrl.Options{
			Scheme: c.config.Scheme,
			// A process may run several, and only one could have the port.
			Metrics: metricsserver.Options{BindAddress: "0"},
		})
		if err != nil {
			return fmt.Errorf("make a manager: %w", err)
		}
		mgr = made
	}
	if err := c.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	return lifecycle.Run(ctx, mgr, c.unsynced)
}

// unsynced returns the kinds with informers that do not have all objects yet.
func (c *InformerController) unsynced() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.order), func(kind string) bool {
		return !slices.ContainsFunc(c.kinds[kind].informers, func(i informer.Informer) bool {
			return !lifecycle.IsSynced(i)
		})
	})
}

// SetupWithManager adds all controllers to a manager: one for each informer of each kind. The controllers are named
// after the kind: `<kind>`, `<kind>-2` and so on. The names need not be unique in the process. Each informer has a
// readiness check `informer-<kind>`, with a number if the manager has one of that name. SetupWithManager returns an
// error for a kind with informers but no handlers, or with handlers but no informers.
func (c *InformerController) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.setUp {
		return errors.New("InformerController was set up already")
	}
	if err := c.validate(); err != nil {
		return err
	}
	c.setUp, c.mgr, c.ctx = true, mgr, context.WithoutCancel(ctx)
	for _, kind := range c.order {
		for _, informer := range c.kinds[kind].informers {
			if err := c.start(kind, informer, false); err != nil {
				return fmt.Errorf("kind %q: %w", kind, err)
			}
		}
	}
	return nil
}

// start adds a controller for the objects of an informer to the manager. running reports whether the manager may
// already run.
func (c *InformerController) start(kind string, informer informer.Informer, running bool) error {
	if nilcheck.IsNil(c.mgr) {
		return errors.New("the manager must not be nil")
	}
	k, name := c.kinds[kind], kind
	if n := len(k.started); n > 0 {
		name += "-" + strconv.Itoa(n+1)
	}
	scope, stop := context.WithCancel(c.ctx)
	k.started = append(k.started, startedInformerOf{informer, stop})
	if err := c.add(scope, &scopedManager{c.mgr, scope, running}, name, informer, k.handlers); err != nil {
		stop()
		return err
	}
	return nil
}

// validateAdded checks an informer that is added while the controller runs.
func (c *InformerController) validateAdded(kind string, informer informer.Informer) error {
	if len(c.kinds[kind].handlers) == 0 {
		return fmt.Errorf("kind %q must have a watcher or a reconciler", kind)
	}
	for _, k := range c.kinds {
		if slices.ContainsFunc(k.started, func(s startedInformerOf) bool { return isSame(s.informer, informer) }) {
			return fmt.Errorf("kind %q must have its own informer, got one that was added before", kind)
		}
	}
	return nil
}

func (c *InformerController) validate() error {
	problems, seen := []error{}, []informer.Informer{}
	for _, kind := range c.order {
		for _, added := range c.kinds[kind].informers {
			if slices.ContainsFunc(seen, func(other informer.Informer) bool { return isSame(other, added) }) {
				problems = append(problems, fmt.Errorf("kind %q must have its own informer, got one that was added before", kind))
			}
			seen = append(seen, added)
		}
		switch k := c.kinds[kind]; {
		case len(k.informers) == 0 && len(k.handlers) > 0:
			problems = append(problems, fmt.Errorf("kind %q must have an informer", kind))
		case len(k.informers) > 0 && len(k.handlers) == 0:
			problems = append(problems, fmt.Errorf("kind %q must have a watcher or a reconciler", kind))
		}
	}
	return errors.Join(problems...)
}

func (c *InformerController) add(
	ctx context.Context, mgr ctrl.Manager, name string, objects informer.Informer, handlers []informedHandler,
) error {
	view, err := informer.View(mgr, name, objects)
	if err != nil {
		return err
	}
	// A tree of reconcilers renews the references that it tracks with each resync.
	config := reconcilers.NewConfig(view, nil, informer.DefaultResyncInterval+time.Hour)
	config.FairNamespaces = c.config.FairNamespaces
	controller := &Controller[resource.Object]{
		Name: name, Type: objects.Object(), MaxConcurrentReconciles: c.config.MaxConcurrentReconciles,
		SkipStatusUpdate: c.config.SkipStatusUpdate, WhileServed: lifecycle.RunsWhileServed(objects),
		Config: config,
		// A kind is a name within this InformerController. A process may have several.
		skipNameValidation: new(true),
	}
	for _, handler := range handlers {
		controller.Handlers = append(controller.Handlers, handler.configured(c.config))
	}
	return controller.SetupWithManager(ctx, view)
}
