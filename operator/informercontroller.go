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

// InformerController calls watchers and reconcilers for what informers tell. Informers and handlers that are added under the same kind belong together: each
// handler is called for the objects of each informer. The kind is no more than a name for that. Two informers for one kind of objects, with different
// selectors, are kept apart by different names.
//
// The handlers of a kind are called one after the other, in the order in which they were added, watchers and reconcilers alike. None stops those that follow:
// each has its own failures and its own retries, see [FanOut]. They are called for every change and for resyncs, except those that are an [Opinionated], or
// are made of one: see [AsOpinionated]. A [Controller] has more choices, of which this is a simpler form.
//
// Everything has to be added before Run or SetupWithManager.
type InformerController struct {
	config InformerControllerConfig

	mu    sync.Mutex
	setUp bool
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

	// ErrorHandler is called for every attempt of a handler that has failed, whether it is tried again or not. Default: errors are only logged and counted.
	ErrorHandler func(ctx context.Context, err error)
	// RetryPolicy tells when to try again. Default: [DefaultRetryPolicy].
	RetryPolicy RetryPolicy
	// RetryDequeuePolicy tells whether a change replaces a retry. Default: [OpinionatedRetryDequeuePolicy].
	RetryDequeuePolicy RetryDequeuePolicy
	// PreviousState is how much of each object is remembered. Default: [PreviousFull]. Less suits a [CustomCacheInformer], which keeps objects out of memory.
	PreviousState PreviousState
	// SkipStatusUpdate leaves the status of objects alone, for kinds that belong to another controller. Default: false, a condition in the status tells of handlers
	// that have given up, for example.
	SkipStatusUpdate bool
	// MaxConcurrentReconciles is how many objects are handled at the same time, for each informer of a kind. Default: that of the manager, which is 1 unless set.
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

// AddInformer adds an informer for a kind. An informer belongs to one kind of one controller, which starts it.
func (c *InformerController) AddInformer(informer Informer, kind string) error {
	return c.change(kind, informer, func(k *informedKind) { k.informers = append(k.informers, informer) })
}

// RemoveInformer takes back AddInformer.
func (c *InformerController) RemoveInformer(informer Informer, kind string) error {
	return c.change(kind, informer, func(k *informedKind) {
		k.informers = slices.DeleteFunc(k.informers, func(other Informer) bool { return isSame(other, informer) })
	})
}

// AddWatcher adds a watcher for the objects of a kind.
func (c *InformerController) AddWatcher(watcher ResourceWatcher, kind string) error {
	return c.change(kind, watcher, func(k *informedKind) {
		k.handlers = append(k.handlers, informedHandler{watcher, true, func() *WithEdge[resource.Object] { return WatcherReconciler(watcher) }})
	})
}

// RemoveWatcher takes back AddWatcher, as often as it was called.
func (c *InformerController) RemoveWatcher(watcher ResourceWatcher, kind string) error {
	return c.change(kind, watcher, func(k *informedKind) { k.remove(true, watcher) })
}

// RemoveAllWatchersForResource takes back all AddWatcher of a kind.
func (c *InformerController) RemoveAllWatchersForResource(kind string) error {
	return c.change(kind, all, func(k *informedKind) { k.remove(true, all) })
}

// AddReconciler adds a reconciler for the objects of a kind.
func (c *InformerController) AddReconciler(reconciler Reconciler, kind string) error {
	return c.change(kind, reconciler, func(k *informedKind) {
		k.handlers = append(k.handlers, informedHandler{reconciler, false, func() *WithEdge[resource.Object] {
			return AsSubReconciler[resource.Object](reconciler)
		}})
	})
}

// RemoveReconciler takes back AddReconciler, as often as it was called.
func (c *InformerController) RemoveReconciler(reconciler Reconciler, kind string) error {
	return c.change(kind, reconciler, func(k *informedKind) { k.remove(false, reconciler) })
}

// RemoveAllReconcilersForResource takes back all AddReconciler of a kind.
func (c *InformerController) RemoveAllReconcilersForResource(kind string) error {
	return c.change(kind, all, func(k *informedKind) { k.remove(false, all) })
}

// all stands for all handlers.
var all = new(struct{ _ byte })

// isSame compares handlers and informers. Values that cannot be compared are never the same: who wants to remove them has to add pointers.
func isSame(a, b any) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

func (k *informedKind) remove(watchers bool, which any) {
	k.handlers = slices.DeleteFunc(k.handlers, func(h informedHandler) bool {
		return h.isWatcher == watchers && (which == any(all) || isSame(h.handler, which))
	})
}

// change changes what is there of a kind. What is to be added or removed must not be nil.
func (c *InformerController) change(kind string, what any, do func(k *informedKind)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case kind == "":
		return errors.New("the kind must not be empty")
	case nilcheck.IsNil(what):
		return fmt.Errorf("what is added or removed for kind %q must not be nil", kind)
	case c.setUp:
		return fmt.Errorf("kind %q cannot be changed any more, the controller runs", kind)
	}
	if c.kinds[kind] == nil {
		c.kinds[kind] = &informedKind{}
		c.order = append(c.order, kind)
	}
	do(c.kinds[kind])
	return nil
}

// Run sets up the controllers and runs the manager, until the context ends or something has failed. It is an error, which names them, when the context has ended
// and some informers could not be filled. Whoever runs the manager otherwise uses SetupWithManager instead.
//
// A manager that is made for KubeConfig elects no leader: every replica calls its handlers. Where only one may, set a Manager with leader election.
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
	return slices.DeleteFunc(slices.Clone(c.order), func(kind string) bool {
		return !slices.ContainsFunc(c.kinds[kind].informers, func(informer Informer) bool { return !lifecycle.IsFilled(informer) })
	})
}

// SetupWithManager adds all controllers to a manager: one for each informer of each kind, named as the kind, and `<kind>-2` and so on for more. A kind with
// informers and without handlers, or the other way round, is an error.
func (c *InformerController) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.setUp {
		return errors.New("InformerController was set up already")
	}
	c.setUp = true
	if err := c.validate(); err != nil {
		return err
	}
	for _, kind := range c.order {
		for i, informer := range c.kinds[kind].informers {
			name := kind
			if i > 0 {
				name += "-" + strconv.Itoa(i+1)
			}
			if err := c.add(ctx, mgr, name, informer, c.kinds[kind].handlers); err != nil {
				return fmt.Errorf("kind %q: %w", kind, err)
			}
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

func (c *InformerController) add(ctx context.Context, mgr ctrl.Manager, name string, informer Informer, handlers []informedHandler) error {
	view, err := WithInformer(mgr, name, informer)
	if err != nil {
		return err
	}
	controller := &Controller[resource.Object]{
		Name: name, Type: informer.Object(), MaxConcurrentReconciles: c.config.MaxConcurrentReconciles, SkipStatusUpdate: c.config.SkipStatusUpdate,
		// References that are tracked by a tree of reconcilers are renewed with each resync.
		Config: reconcilers.NewConfig(view, nil, defaultResync+time.Hour),
	}
	for _, handler := range handlers {
		controller.Handlers = append(controller.Handlers, handler.configured(c.config))
	}
	return controller.SetupWithManager(ctx, view)
}
