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
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/benchmarks/internal/api"
	"trueup.dev/benchmarks/internal/traffic"
)

// gracePeriod is what reconciles that are under way get to end.
const gracePeriod = 30 * time.Second

// SetUp adds a controller for widgets to a manager, built with the wiring, and returns its reconciler.
type SetUp func(ctx context.Context, mgr ctrl.Manager, wiring *Wiring) (reconcile.Reconciler, error)

// Wiring is what every controller is built with, whoever wrote it, so that all work alike and can be watched at it.
type Wiring struct {
	workers int
	log     logr.Logger
	resync  chan event.GenericEvent

	// told has the time when the timed handler was last told of a change.
	told chan time.Time

	mu   sync.Mutex
	made *queue
}

// Apply gives the builder of a controller its options, its queue and the source of resyncs.
func (w *Wiring) Apply(bldr *builder.Builder) {
	bldr.WithOptions(controller.Options{
		MaxConcurrentReconciles: w.workers,
		NewQueue: func(
			name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.made = newQueue(name, limiter, w.log)
			return w.made
		},
	}).WatchesRawSource(source.Channel(w.resync, &handler.EnqueueRequestForObject{}))
}

// Timed returns the handler of a watch that notes when it is told of a change, for [Trial.Fanout].
func (w *Wiring) Timed(next handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: next.Create,
		UpdateFunc: func(
			ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
		) {
			select {
			case w.told <- time.Now():
			default: // nobody has asked
			}
			next.Update(ctx, e, queue)
		},
		DeleteFunc:  next.Delete,
		GenericFunc: next.Generic,
	}
}

// queue is there as soon as the controller runs.
func (w *Wiring) queue() *queue {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made
}

// running is a controller under way.
type running struct {
	*Wiring
	reconciler reconcile.Reconciler
	cancel     context.CancelFunc
	ended      context.Context // done when the manager has returned; the cause is its error
}

// start starts a controller. The returned channel tells when the last of so many widgets has converged, as far as the
// controller itself can know: through its own cache.
func (t *Trial) start(
	ctx context.Context, setUp SetUp, parents int, converged func(*api.Widget) bool,
) (<-chan time.Time, error) {
	wiring := &Wiring{
		workers: t.options.Workers, log: logr.Discard(), resync: make(chan event.GenericEvent), told: make(chan time.Time, 1),
	}
	if t.options.Logging {
		wiring.log = logr.FromSlogHandler(slog.NewJSONHandler(io.Discard, nil))
	}
	cfg := t.sandbox.RESTConfig()
	if t.Latency > 0 {
		cfg.Wrap(traffic.Delay(t.Latency))
	}
	cfg.Wrap(t.counter.Wrap) // around the delay: a request that waits is under way
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  t.scheme,
		Logger:                  wiring.log,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: new(true)}, // there is one after the other
		GracefulShutdownTimeout: new(gracePeriod),
	})
	if err != nil {
		return nil, err
	}
	reconciler, err := setUp(ctx, mgr, wiring)
	if err != nil {
		return nil, fmt.Errorf("set up the controller: %w", err)
	}
	done, err := watchConvergence(ctx, mgr, parents, converged)
	if err != nil {
		return nil, err
	}
	managed, cancel := context.WithCancel(ctx)
	ended, end := context.WithCancelCause(context.Background())
	t.controller = &running{Wiring: wiring, reconciler: reconciler, cancel: cancel, ended: ended}
	go func() { end(mgr.Start(managed)) }()
	return done, nil
}

// watchConvergence tells the time when the last widget has converged.
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
		if !ok || seen[w.UID] || !converged(w) {
			return
		}
		if seen[w.UID] = true; len(seen) == parents {
			done <- time.Now()
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, obj any) { look(obj) },
	})
	return done, err
}

// stop ends the controller, and returns when it has ended.
func (r *running) stop() error {
	r.cancel()
	select {
	case <-r.ended.Done():
		return r.failure()
	case <-time.After(2 * gracePeriod):
		return errors.New("the controller does not stop")
	}
}

// failure is why the controller has ended, nil when it was stopped.
func (r *running) failure() error {
	if cause := context.Cause(r.ended); !errors.Is(cause, context.Canceled) {
		return fmt.Errorf("the controller has ended: %w", cause)
	}
	return nil
}
