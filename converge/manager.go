// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// processManager is the manager of a process. Its controllers are real ones, with their own handlers, predicates and
// queues.
type processManager struct {
	process *process
	client  client.Client
	cache   *processCache
	server  webhook.Server
	// runnables are started once the process has been set up.
	runnables []ctrlmanager.Runnable
	problems  []error
	// busy is true if there are others than controllers among them.
	busy bool
	// queues are what the controllers have their requests in, once they have started, by name.
	queues map[string]reflect.Value
}

var _ ctrlmanager.Manager = (*processManager)(nil)

func newManager(p *process, c client.Client) *processManager {
	return &processManager{
		process: p, client: c, cache: &processCache{process: p, Reader: c}, queues: map[string]reflect.Value{},
	}
}

// Add keeps what is to be started. Reconciles of controllers are noted.
func (m *processManager) Add(runnable ctrlmanager.Runnable) error {
	if !m.watchController(runnable) {
		m.busy = true
	}
	m.runnables = append(m.runnables, runnable)
	return nil
}

// watchController has the reconciles of a controller go through the process. It is false for what is no controller.
//
// What builders build has its reconciler in an exported field, but its type is internal to controller-runtime.
func (m *processManager) watchController(runnable ctrlmanager.Runnable) bool {
	value := reflect.ValueOf(runnable)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return false
	}
	field := value.Elem().FieldByName("Do")
	if !field.IsValid() || !field.CanSet() {
		return false
	}
	inner, ok := field.Interface().(reconcile.Reconciler)
	if !ok {
		return false
	}
	name := value.Elem().FieldByName("Name").String()
	m.queues[name] = value.Elem().FieldByName("Queue")
	consistent := m.process.run.consistent(m.process, inner)
	field.Set(reflect.ValueOf(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		return m.process.controlled(ctx, request{Request: req, controller: name}, consistent)
	})))
	return true
}

// ask has a request be worked on once more, whatever its controller is told of.
func (p *process) ask(req request) {
	if p.manager == nil {
		p.queue.add(req, time.Now())
		return
	}
	field := p.manager.queues[req.controller]
	if !field.IsValid() || !field.CanInterface() {
		return
	}
	if queue, ok := field.Interface().(interface{ Add(reconcile.Request) }); ok {
		queue.Add(req.Request)
	}
}

// controlled makes a reconcile of a controller. Its beginning is a call, so that the order of those that begin at once
// is always the same.
func (p *process) controlled(ctx context.Context, req request, do reconcile.Reconciler) (reconcile.Result, error) {
	var a *activity
	err := p.make(ctx, &call{
		site:  site{act: "reconcile", kind: req.controller, key: req.NamespacedName},
		begin: func() { a = p.run.started(req) },
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	p.reconcile(ctx, a, do, true)
	return a.result, a.err
}

// startManager sets the process up, and starts its controllers.
func (r *run) startManager(m *processManager) {
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		defer r.wake()
		err = r.plan.Setup(m)
	}()
	r.serveUntil(done)
	if m.process.dead.Load() {
		return // before it was ready
	}
	if err != nil && len(r.schedule) > 0 {
		r.crash() // as programs do that cannot start, to be started again
		return
	}
	if err != nil {
		r.violate(Violation{Oracle: scenarioItself, Message: "Setup: " + err.Error()})
		return
	}
	m.cache.started = true
	for _, runnable := range m.runnables {
		go func() {
			if err := runnable.Start(m.process.ctx); err != nil && m.process.ctx.Err() == nil {
				m.process.mu.Lock()
				defer m.process.mu.Unlock()
				m.problems = append(m.problems, err)
			}
		}()
	}
	// Controllers look every 100 ms whether their caches have synced.
	r.work(time.Now().Add(startTime))
	m.process.mu.Lock()
	defer m.process.mu.Unlock()
	for _, problem := range m.problems {
		if len(r.schedule) > 0 {
			if r.process == m.process && !m.process.dead.Load() {
				m.process.dead.Store(true)
			}
			break
		}
		r.violate(Violation{Oracle: scenarioItself, Message: fmt.Sprintf("unable to start: %v", problem)})
	}
}

// startTime is how long controllers may take to start.
const startTime = 250 * time.Millisecond

func (m *processManager) GetClient() client.Client             { return m.client }
func (m *processManager) GetAPIReader() client.Reader          { return m.process.env.APIReader }
func (m *processManager) GetScheme() *runtime.Scheme           { return m.process.run.plan.Scheme }
func (m *processManager) GetCache() cache.Cache                { return m.cache }
func (m *processManager) GetFieldIndexer() client.FieldIndexer { return m.cache }
func (m *processManager) GetRESTMapper() meta.RESTMapper       { return m.process.run.plan.registry.Mapper() }

func (m *processManager) GetLogger() logr.Logger { return logr.New(log.NullLogSink{}) }

func (m *processManager) GetHTTPClient() *http.Client { return &http.Client{Transport: noServer{}} }

// GetConfig returns the config of an API server that cannot be reached but by the client of the manager.
func (m *processManager) GetConfig() *rest.Config {
	return &rest.Config{Host: "http://converge.invalid", Transport: noServer{}}
}

type noServer struct{}

func (noServer) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf(
		"%s %s: the API server of a scenario is only there for the clients of its manager", request.Method, request.URL.Path,
	)
}

func (m *processManager) GetEventRecorderFor(string) record.EventRecorder {
	return m.process.env.Recorder
}

func (m *processManager) GetEventRecorder(string) ctrlrecorder.EventRecorder {
	return &events.FakeRecorder{}
}

// GetControllerOptions allows each process to use the same names again.
func (m *processManager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true)}
}

func (m *processManager) GetConverterRegistry() conversion.Registry { return conversion.NewRegistry() }

// GetWebhookServer returns a server that is not started.
func (m *processManager) GetWebhookServer() webhook.Server {
	if m.server == nil {
		m.server = webhook.NewServer(webhook.Options{})
	}
	return m.server
}

// Elected is closed: each process is the leader.
func (m *processManager) Elected() <-chan struct{} {
	elected := make(chan struct{})
	close(elected)
	return elected
}

// AddMetricsServerExtraHandler does nothing.
func (m *processManager) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

// AddHealthzCheck does nothing.
func (m *processManager) AddHealthzCheck(string, healthz.Checker) error { return nil }

// AddReadyzCheck does nothing.
func (m *processManager) AddReadyzCheck(string, healthz.Checker) error { return nil }

// Start waits: the scenario starts what was added.
func (m *processManager) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
