// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/engine/fairqueue"
	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/traffic"
	"trueup.dev/reconcilers"
)

// gracePeriod is the time that in-flight reconciles have to finish.
const gracePeriod = 30 * time.Second

// SetUp adds a controller for widgets to a manager, built with the wiring, and returns its reconciler.
type SetUp func(ctx context.Context, mgr ctrl.Manager, wiring *Wiring) (reconcile.Reconciler, error)

// Wiring has what every controller is built with, so that all contenders work alike and can be measured.
type Wiring struct {
	workers int
	log     logr.Logger
	resync  chan event.GenericEvent

	// lastEvent is the time of the last call of the timed handler.
	lastEvent chan time.Time
	// takeTurns reports whether the namespaces take turns.
	takeTurns bool

	mu   sync.Mutex
	made *queue
}

// Apply sets the options, the queue and the source of resyncs of the builder of a controller.
func (w *Wiring) Apply(bldr *builder.Builder) {
	bldr.WithOptions(controller.Options{
		MaxConcurrentReconciles: w.workers,
		NewQueue: func(
			name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.takeTurns {
				w.made = &queue{PriorityQueue: fairqueue.New(name, limiter).(priorityqueue.PriorityQueue[reconcile.Request])}
			} else {
				w.made = newQueue(name, limiter, w.log)
			}
			return w.made
		},
	}).WatchesRawSource(source.Channel(w.resync, &handler.EnqueueRequestForObject{}))
}

// TakeTurns makes the namespaces take turns, as Config.FairNamespaces does, which sets no queue with counters.
func (w *Wiring) TakeTurns() { w.takeTurns = true }

// Timed returns a handler of a watch that records the time of its calls, for [Trial.Fanout].
func (w *Wiring) Timed(next handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: next.Create,
		UpdateFunc: func(
			ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
		) {
			select {
			case w.lastEvent <- time.Now():
			default: // not measuring
			}
			next.Update(ctx, e, queue)
		},
		DeleteFunc:  next.Delete,
		GenericFunc: next.Generic,
	}
}

// queue is set as soon as the controller runs.
func (w *Wiring) queue() *queue {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made
}

// running is a running controller.
type running struct {
	*Wiring
	reconciler reconcile.Reconciler
	cancel     context.CancelFunc
	ended      context.Context // done when the manager has returned; the cause is its error
}

// start starts a controller. The returned channel receives the time at which the last of the widgets converged, as seen
// in the cache of the controller.
func (t *Trial) start(
	ctx context.Context, setUp SetUp, parents int, converged func(*api.Widget) bool,
) (done <-chan time.Time, err error) {
	wiring := &Wiring{
		workers: t.options.Workers, log: logr.Discard(), resync: make(chan event.GenericEvent),
		lastEvent: make(chan time.Time, 1),
	}
	if t.options.Logging {
		wiring.log = logr.FromSlogHandler(slog.NewJSONHandler(io.Discard, nil))
	}
	cfg := t.sandbox.RESTConfig()
	if t.Latency > 0 {
		cfg.Wrap(traffic.Delay(t.Latency))
	}
	cfg.Wrap(t.counter.Wrap) // outside of the delay: a delayed request is in flight
	cached := cache.Options{}
	if t.options.ReduceCache {
		cached.DefaultTransform = reconcilers.CacheTransform()
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Cache:                   cached,
		Scheme:                  t.scheme,
		Logger:                  wiring.log,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: new(true)}, // controllers run in turn
		GracefulShutdownTimeout: new(gracePeriod),
	})
	if err != nil {
		return nil, err
	}
	managed, cancel := context.WithCancel(ctx)
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	if err := t.observe(managed, mgr); err != nil {
		return nil, err
	}
	reconciler, err := setUp(ctx, mgr, wiring)
	if err != nil {
		return nil, fmt.Errorf("set up the controller: %w", err)
	}
	done, err = watchConvergence(ctx, mgr, parents, converged)
	if err != nil {
		return nil, err
	}
	ended, end := context.WithCancelCause(context.Background())
	t.controller = &running{Wiring: wiring, reconciler: reconciler, cancel: cancel, ended: ended}
	go func() { end(mgr.Start(managed)) }()
	return done, nil
}

// watchConvergence sends the time at which the last widget has converged.
func watchConvergence(
	ctx context.Context, mgr ctrl.Manager, parents int, converged func(*api.Widget) bool,
) (<-chan time.Time, error) {
	informer, err := mgr.GetCache().GetInformer(ctx, &api.Widget{})
	if err != nil {
		return nil, err
	}
	done := make(chan time.Time, 1)
	seen := map[types.UID]bool{}
	look := func(obj any) {
		w, ok := obj.(*api.Widget)
		if !ok || seen == nil || seen[w.UID] || !converged(w) {
			return
		}
		if seen[w.UID] = true; len(seen) == parents {
			done <- time.Now()
			seen = nil // not a part of the heap that is measured
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, obj any) { look(obj) },
	})
	return done, err
}

// stop stops the controller, and returns when it has stopped.
func (r *running) stop() error {
	r.cancel()
	select {
	case <-r.ended.Done():
		return r.failure()
	case <-time.After(2 * gracePeriod):
		return errors.New("the controller did not stop")
	}
}

// failure returns the reason why the controller ended, nil if it was stopped.
func (r *running) failure() error {
	if cause := context.Cause(r.ended); !errors.Is(cause, context.Canceled) {
		return fmt.Errorf("the controller stopped: %w", cause)
	}
	return nil
}
