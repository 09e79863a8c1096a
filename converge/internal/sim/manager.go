// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/offline"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
)

// processManager is the manager of a process. Its controllers are the controllers of controller-runtime, with their own
// handlers, predicates and queues.
type processManager struct {
	offline.Manager

	process *Process
	cache   *processCache
	// problems are the errors of runnables.
	problems []error
	// webhooks is the webhook server, once it was asked for.
	webhooks *webhookServer
	// busy reports whether runnables other than controllers were added.
	busy bool
	// controllers are the controllers by name, and queues are the queues of the controllers.
	controllers map[string]ctrlfields.Controller
	queues      map[string]*controllerQueue
}

var _ ctrlmanager.Manager = (*processManager)(nil)

// newManager returns the manager of a process, which is always the leader.
func newManager(p *Process, c client.Client) *processManager {
	m := &processManager{
		process: p, cache: &processCache{process: p, Reader: c}, controllers: map[string]ctrlfields.Controller{},
		queues: map[string]*controllerQueue{},
	}
	m.Leader = true
	m.Cluster = offline.Cluster{
		Scheme: p.machine.Scheme, Mapper: p.mapper(), Client: c, APIReader: p.APIReader,
		Cache: m.cache, Recorder: p.Recorder,
	}
	// They are metrics of the test's process, and cost time.
	observe.Of(m).Remove(metrics.Default())
	return m
}

// GetEventRecorder implements [cluster.Cluster].
func (m *processManager) GetEventRecorder(string) ctrlrecorder.EventRecorder {
	return eventRecorder{m.process}
}

// recorder drops all events. The trace has about which objects there were warnings.
type recorder struct{ process *Process }

var _ record.EventRecorder = recorder{}

// Event implements [record.EventRecorder].
func (r recorder) Event(obj runtime.Object, kind, _, _ string) { r.process.recorded(obj, kind) }

// Eventf implements [record.EventRecorder].
func (r recorder) Eventf(obj runtime.Object, kind, _, _ string, _ ...any) {
	r.process.recorded(obj, kind)
}

// AnnotatedEventf implements [record.EventRecorder].
func (r recorder) AnnotatedEventf(obj runtime.Object, _ map[string]string, kind, _, _ string, _ ...any) {
	r.process.recorded(obj, kind)
}

// eventRecorder is a recorder of the other API for events.
type eventRecorder struct{ process *Process }

// Eventf implements [ctrlrecorder.EventRecorder].
func (r eventRecorder) Eventf(obj, _ runtime.Object, kind, _, _, _ string, _ ...any) {
	r.process.recorded(obj, kind)
}

// AnnotatedEventf implements [ctrlrecorder.EventRecorder].
func (r eventRecorder) AnnotatedEventf(
	obj, _ runtime.Object, _ map[string]string, kind, _, _, _ string, _ ...any,
) {
	r.process.recorded(obj, kind)
}

// recorded is called for each event.
func (p *Process) recorded(about runtime.Object, kind string) {
	if obj, ok := about.(client.Object); ok && kind == corev1.EventTypeWarning && !nilcheck.IsNil(obj) {
		p.trace.Warn(obj)
	}
}

// ProcessOf returns the process of a manager that a set-up was called with, or nil for other managers.
func ProcessOf(m ctrlmanager.Manager) *Process {
	if m, ok := m.(*processManager); ok {
		return m.process
	}
	return nil
}

// Add keeps what to start after the set-up. It makes the requests of controllers go through the queue of the process,
// and their reconciles through the process.
func (m *processManager) Add(runnable ctrlmanager.Runnable) error {
	if lifecycle.IsStartWatch(runnable) {
		return nil
	}
	if controller, ok := ctrlfields.ControllerOf(runnable); ok {
		m.watchController(controller)
	} else {
		m.busy = true
	}
	return m.Manager.Add(runnable)
}

func (m *processManager) watchController(controller ctrlfields.Controller) {
	name := controller.Name()
	queue := &controllerQueue{process: m.process, name: name, limiter: newRateLimiter(), shadow: true}
	m.controllers[name], m.queues[name] = controller, queue
	if controller.HasDefaultQueue() {
		queue.shadow = false
		controller.SetNewQueue(func(
			_ string, limiter workqueue.TypedRateLimiter[reconcile.Request],
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			queue.limiter = limiter
			return queue
		})
	}
	controller.WrapReconciler(func(inner reconcile.Reconciler) reconcile.Reconciler {
		consistent := m.process.consistent(inner)
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			return m.process.controlled(ctx, queue, req, consistent)
		})
	})
}

// ask requests another reconcile, without an event.
func (p *Process) ask(req world.RequestOf) {
	if p.manager == nil {
		p.direct.Add(req.Request)
		return
	}
	if controller, ok := p.manager.controllers[req.Controller]; ok {
		controller.Enqueue(req.Request)
	}
}

// controlled performs a reconcile of a controller. If the loop has not started it, its start is a call, so that
// concurrent reconciles always start in the same order.
func (p *Process) controlled(
	ctx context.Context, queue *controllerQueue, req reconcile.Request, do reconcile.Reconciler,
) (reconcile.Result, error) {
	a := queue.started(req)
	if a == nil {
		err := p.submit(ctx, &call{
			Call: world.Call{Site: inject.Site{Act: "reconcile", Kind: queue.name, Key: req.NamespacedName}}, begin: func() {
				item, ok := p.queue.remove(queue, req)
				if !ok {
					item = queued{RequestOf: world.RequestOf{Request: req, Program: p.program.Index, Controller: queue.name}}
				}
				a = p.started(item)
			},
		})
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	p.reconcile(ctx, a, do, true)
	return a.Result, a.Err
}

// startManager calls Setup, and starts the controllers.
func (r *run) startManager(m *processManager) {
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		defer r.scheduler.wake()
		err = m.process.program.Setup(m)
	}()
	r.gateway.serveUntil(m.process, done)
	if m.process.dead.Load() {
		return // it has crashed during the start
	}
	if err != nil && !r.faults.none() {
		m.process.die() // a program that cannot start exits, and is restarted
		return
	}
	if err != nil {
		r.verdict.Violate(finding.ScenarioFailure("Setup: " + err.Error()))
		return
	}
	r.startWebhooks(m)
	m.cache.started = true
	if m.process.election != nil {
		go m.process.election.run()
	}
	for _, runnable := range m.Runnables() {
		go func() {
			if !m.process.election.admits(runnable) {
				return
			}
			if err := runnable.Start(m.process.ctx); err != nil && m.process.ctx.Err() == nil {
				m.process.mu.Lock()
				defer m.process.mu.Unlock()
				m.problems = append(m.problems, err)
			}
		}()
	}
	// Controllers check every 100 ms whether their caches have synced. Do not shorten that: other controllers act
	// meanwhile, and some bugs only show if they do.
	r.work(time.Now().Add(startTime))
	m.process.restarting = false
	m.process.mu.Lock()
	defer m.process.mu.Unlock()
	for _, problem := range m.problems {
		if !r.faults.none() {
			if r.processes.has(m.process) && !m.process.dead.Load() {
				m.process.dead.Store(true)
			}
			break
		}
		r.verdict.Violate(finding.ScenarioFailure(fmt.Sprintf("unable to start: %v", problem)))
	}
}

// startTime is how long controllers may take to start.
const startTime = 250 * time.Millisecond
