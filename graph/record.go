// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/offline"
)

// SetUp adds controllers and webhooks to a manager.
type SetUp func(ctx context.Context, mgr ctrl.Manager) error

// Record calls setUp with a manager that needs no cluster and is never started, and returns the graph of what setUp
// adds. All API requests of that manager fail. The error is the one of setUp, or reports that setUp adds nothing.
//
// Controllers that do not consist of reconcilers of this module appear with the Go type of their reconciler. The graph
// of a runnable with a method Graph() *Graph, such as an app of package simple, is added.
func Record(ctx context.Context, scheme *runtime.Scheme, setUp SetUp) (*Graph, error) {
	if scheme == nil || setUp == nil {
		return nil, errors.New("graph: a scheme and a set-up function are required")
	}
	offlineConfig := (&offline.Cluster{}).GetConfig()
	inner, err := ctrl.NewManager(offlineConfig, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Logger: logr.New(log.NullLogSink{}), Controller: config.Controller{SkipNameValidation: new(true)},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return offline.NewMapper(scheme), nil },
	})
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	m := &recordingManager{Manager: inner, server: &recordingServer{Server: webhook.NewServer(webhook.Options{})}}
	if err := setUp(ctx, m); err != nil {
		return nil, fmt.Errorf("graph: set-up failed: %w", err)
	}
	g := m.graph()
	if len(g.Controllers) == 0 && len(g.Webhooks) == 0 {
		return nil, errors.New("graph: set-up adds neither a controller nor a webhook to the manager")
	}
	return g, nil
}

// recordingManager keeps what is added to it.
type recordingManager struct {
	manager.Manager

	server *recordingServer

	mu        sync.Mutex
	runnables []manager.Runnable
}

func (m *recordingManager) Add(runnable manager.Runnable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runnables = append(m.runnables, runnable)
	return nil
}

func (m *recordingManager) GetWebhookServer() webhook.Server { return m.server }

func (m *recordingManager) graph() *Graph {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := &Graph{Controllers: []*Node{}}
	for _, runnable := range m.runnables {
		if program, ok := runnable.(interface{ Graph() *Graph }); ok {
			part := program.Graph()
			g.Controllers = append(g.Controllers, part.Controllers...)
			g.Webhooks = append(g.Webhooks, part.Webhooks...)
		}
		controller, ok := ctrlfields.ControllerOf(runnable)
		if !ok {
			continue
		}
		n := describe(controller.Reconciler(), m.GetScheme())
		if n.Name == "" {
			n.Name = controller.Name()
		}
		g.Controllers = append(g.Controllers, n)
	}
	g.Webhooks = append(g.Webhooks, m.server.nodes(m.GetScheme())...)
	return g
}

// recordingServer keeps the handlers of webhooks.
type recordingServer struct {
	webhook.Server

	mu       sync.Mutex
	handlers map[string]http.Handler
}

func (s *recordingServer) Register(path string, handler http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handlers == nil {
		s.handlers = map[string]http.Handler{}
	}
	s.handlers[path] = handler
}

func (s *recordingServer) nodes(scheme *runtime.Scheme) []*Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return webhooks(s.handlers, scheme)
}

// OfWebhooks returns the graph of HTTP handlers by path.
func OfWebhooks(handlers map[string]http.Handler) *Graph {
	return &Graph{Controllers: []*Node{}, Webhooks: webhooks(handlers, runtime.NewScheme())}
}

func webhooks(handlers map[string]http.Handler, scheme *runtime.Scheme) []*Node {
	var nodes []*Node
	for path, handler := range handlers {
		var reconciler any = handler
		if hook, ok := handler.(*webhook.Admission); ok && hook.Handler != nil {
			reconciler = hook.Handler
		}
		n := describe(reconciler, scheme)
		n.Webhook = path
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return cmp.Compare(a.Webhook, b.Webhook) })
	return nodes
}
