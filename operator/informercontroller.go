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

	"trueup.dev/internal/lifecycle"
	"trueup.dev/internal/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// InformerController calls watchers and reconcilers for what informers tell. Informers and handlers that are added
// under the same kind belong together: each handler is called for the objects of each informer. The kind is no more
// than a name for that. Two informers for one kind of objects, with different selectors, are kept apart by different
// names.
//
// The handlers of a kind are called one after the other, in the order in which they were added, watchers and
// reconcilers alike. None stops those that follow: each has its own failures and its own retries, see [FanOut]. They
// are called for every change and for resyncs, except those that are an [Opinionated], or are made of one: see
// [AsOpinionated]. A [Controller] has more choices, of which this is a simpler form.
//
// Informers may be added and removed at any time. Handlers must be added before the informers of their kind run.
type InformerController struct {
	config InformerControllerConfig

	mu    sync.Mutex
	setUp bool
	// mgr runs what is added after the controller is set up, with the values of ctx.
	mgr ctrl.Manager
	ctx context.Context
	// order is that of the kinds.
	order []string
	kinds map[string]*informedKind
}

// InformerControllerConfig tells how an [InformerController] works.
type InformerControllerConfig struct {
	// Manager runs the controllers, see [InformerController.Run]. Default: one for KubeConfig, without leader election.
	Manager ctrl.Manager
	// KubeConfig leads to the cluster, if there is no Manager.
	KubeConfig *rest.Config
	// Scheme has the Go types of kinds, if there is no Manager. Default: those of Kubernetes.
	Scheme *runtime.Scheme

	// ErrorHandler is called for every attempt of a handler that has failed, whether it is tried again or not. Default:
	// errors are only logged and counted.
	ErrorHandler func(ctx context.Context, err error)
	// RetryPolicy tells when to try again. Default: [DefaultRetryPolicy].
	RetryPolicy RetryPolicy
	// RetryDequeuePolicy tells whether a change replaces a retry. Default: [OpinionatedRetryDequeuePolicy].
	RetryDequeuePolicy RetryDequeuePolicy
	// PreviousState is how much of each object is remembered. Default: [PreviousFull]. Less suits a [CustomCacheInformer],
	// which keeps objects out of memory.
	PreviousState PreviousState
	// SkipStatusUpdate leaves the status of objects alone, for kinds that belong to another controller. Default: false, a
	// condition in the status tells of handlers that have given up, for example.
	SkipStatusUpdate bool
	// MaxConcurrentReconciles is how many objects are handled at the same time, for each informer of a kind. Default: that
	// of the manager, which is 1 unless set.
	MaxConcurrentReconciles int
}

// DefaultInformerControllerConfig returns the config with its defaults, and without a cluster.
func DefaultInformerControllerConfig() InformerControllerConfig {
	return InformerControllerConfig{RetryPolicy: DefaultRetryPolicy, RetryDequeuePolicy: OpinionatedRetryDequeuePolicy}
}

// informedKind is what was added under one name.
type informedKind struct {
	informers []Informer
	handlers  []informedHandler
	// stops end what runs for informers, in the order of all that were ever started: an informer runs once.
	stops []startedInformerOf
}

// startedInformerOf is an informer that runs, or has run.
type startedInformerOf struct {
	informer Informer
	stop     context.CancelFunc
}

// informedHandler is a watcher or a reconciler.
type informedHandler struct {
	handler   any
	isWatcher bool
	// edge makes what calls the handler. Each informer has its own.
	edge func() *WithEdge[resource.Object]
}

// configured returns what calls the handler for one informer.
func (h informedHandler) configured(config InformerControllerConfig) reconcilers.SubReconciler[resource.Object] {
	opinionated, ok := AsOpinionated(h.handler)
	var edge *WithEdge[resource.Object]
	if ok {
		if edge = opinionated.Handler; edge == nil {
			return opinionated // which is an error at set-up
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

// AddInformer adds an informer for a kind. An informer belongs to one kind of one controller, which starts it: at once
// if the controller runs. Then it is no part of the manager's readiness, and the kind must have handlers.
func (c *InformerController) AddInformer(informer Informer, kind string) error {
	return c.change(kind, informer, func(k *informedKind) error {
		if c.setUp {
			if err := c.validateLate(kind, informer); err != nil {
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

// RemoveInformer takes back AddInformer. An informer that runs is stopped, and with it what handles its objects:
// handlers are called no more, not for deletions either, and the context of calls in progress ends. It cannot be added
// again.
func (c *InformerController) RemoveInformer(informer Informer, kind string) error {
	return c.change(kind, informer, func(k *informedKind) error {
		k.informers = slices.DeleteFunc(k.informers, func(other Informer) bool { return isSame(other, informer) })
		for _, started := range k.stops {
			if isSame(started.informer, informer) {
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

// RemoveWatcher takes back AddWatcher, as often as it was called.
func (c *InformerController) RemoveWatcher(watcher ResourceWatcher, kind string) error {
	return c.changeHandlers(kind, watcher, func(k *informedKind) { k.remove(true, watcher) })
}

// RemoveAllWatchersForResource takes back all AddWatcher of a kind.
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

// RemoveReconciler takes back AddReconciler, as often as it was called.
func (c *InformerController) RemoveReconciler(reconciler Reconciler, kind string) error {
	return c.changeHandlers(kind, reconciler, func(k *informedKind) { k.remove(false, reconciler) })
}

// RemoveAllReconcilersForResource takes back all AddReconciler of a kind.
func (c *InformerController) RemoveAllReconcilersForResource(kind string) error {
	return c.changeHandlers(kind, all, func(k *informedKind) { k.remove(false, all) })
}

// all stands for all handlers.
var all = new(struct{ _ byte })

// isSame compares handlers and informers. Values that cannot be compared are never the same: who wants to remove them
// has to add pointers.
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
		if len(k.stops) > 0 {
			return fmt.Errorf("the handlers of kind %q cannot be changed any more, its informers run", kind)
		}
		do(k)
		return nil
	})
}

// change changes what there is of a kind. What is to be added or removed must not be nil.
func (c *InformerController) change(kind string, what any, do func(k *informedKind) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case kind == "":
		return errors.New("the kind must not be empty")
	case nilcheck.IsNil(what):
		return fmt.Errorf("what is added or removed for kind %q must not be nil", kind)
	}
	if c.kinds[kind] == nil {
		c.kinds[kind] = &informedKind{}
		c.order = append(c.order, kind)
	}
	return do(c.kinds[kind])
}

// Run sets up the controllers and runs the manager, until the context ends or something has failed. It is an error,
// which names them, when the context has ended and some informers could not be filled. Whoever runs the manager
// otherwise uses SetupWithManager instead.
//
// A manager that is made for KubeConfig elects no leader: every replica calls its handlers. Where only one may, set a
// Manager with leader election.
func (c *InformerController) Run(ctx context.Context) error {
	mgr := c.config.Manager
	if mgr == nil {
		if c.config.KubeConfig == nil {
			return errors.New("InformerController must have a Manager or a KubeConfig")
		}
		made, err := ctrl.NewManager(c.config.KubeConfig, ctrl.Options{Scheme: c.config.Scheme})
		if err != nil {
			return fmt.Errorf("make a manager: %w", err)
		}
		mgr = made
	}
	if err := c.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	return lifecycle.Run(ctx, mgr, c.unfilled)
}

// unfilled are the kinds with informers that do not have all objects yet.
func (c *InformerController) unfilled() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.order), func(kind string) bool {
		return !slices.ContainsFunc(c.kinds[kind].informers, func(informer Informer) bool {
			return !lifecycle.IsFilled(informer)
		})
	})
}

// SetupWithManager adds all controllers to a manager: one for each informer of each kind, named as the kind, and
// `<kind>-2` and so on for more. A kind with informers and without handlers, or the other way round, is an error.
func (c *InformerController) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.setUp {
		return errors.New("InformerController was set up already")
	}
	c.setUp, c.mgr, c.ctx = true, mgr, context.WithoutCancel(ctx)
	if err := c.validate(); err != nil {
		return err
	}
	for _, kind := range c.order {
		for _, informer := range c.kinds[kind].informers {
			if err := c.start(kind, informer, false); err != nil {
				return fmt.Errorf("kind %q: %w", kind, err)
			}
		}
	}
	return nil
}

// start adds what handles the objects of an informer to the manager.
func (c *InformerController) start(kind string, informer Informer, late bool) error {
	if nilcheck.IsNil(c.mgr) {
		return errors.New("the manager must not be nil")
	}
	k, name := c.kinds[kind], kind
	if n := len(k.stops); n > 0 {
		name += "-" + strconv.Itoa(n+1)
	}
	scope, stop := context.WithCancel(c.ctx)
	k.stops = append(k.stops, startedInformerOf{informer, stop})
	if err := c.add(scope, &scopedManager{c.mgr, scope, late}, name, informer, k.handlers); err != nil {
		stop()
		return err
	}
	return nil
}

// validateLate checks what is added while the controller runs.
func (c *InformerController) validateLate(kind string, informer Informer) error {
	if len(c.kinds[kind].handlers) == 0 {
		return fmt.Errorf("kind %q must have a watcher or a reconciler", kind)
	}
	for _, k := range c.kinds {
		if slices.ContainsFunc(k.stops, func(s startedInformerOf) bool { return isSame(s.informer, informer) }) {
			return fmt.Errorf("kind %q must have an informer of its own, which no other has or has had", kind)
		}
	}
	return nil
}

func (c *InformerController) validate() error {
	problems, all := []error{}, []Informer{}
	for _, kind := range c.order {
		for _, informer := range c.kinds[kind].informers {
			if slices.ContainsFunc(all, func(other Informer) bool { return isSame(other, informer) }) {
				problems = append(problems, fmt.Errorf("kind %q must have an informer of its own, which no other has", kind))
			}
			all = append(all, informer)
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
	ctx context.Context, mgr ctrl.Manager, name string, informer Informer, handlers []informedHandler,
) error {
	view, err := WithInformer(mgr, name, informer)
	if err != nil {
		return err
	}
	controller := &Controller[resource.Object]{
		Name: name, Type: informer.Object(), MaxConcurrentReconciles: c.config.MaxConcurrentReconciles,
		SkipStatusUpdate: c.config.SkipStatusUpdate,
		// References that are tracked by a tree of reconcilers are renewed with each resync.
		Config: reconcilers.NewConfig(view, nil, defaultResync+time.Hour),
	}
	for _, handler := range handlers {
		controller.Handlers = append(controller.Handlers, handler.configured(c.config))
	}
	return controller.SetupWithManager(ctx, view)
}
