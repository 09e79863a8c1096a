// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// Manager is a manager without an API server. It logs nothing, serves nothing and starts nothing: not what is added to
// it, not its webhook server, and no metrics or health checks.
type Manager struct {
	Cluster

	// Leader makes Elected return a closed channel. By default, the manager is never elected.
	Leader bool

	// mu guards the fields below: a set-up may use the manager concurrently.
	mu        sync.Mutex
	runnables []manager.Runnable
	server    webhook.Server
	registry  conversion.Registry
}

var _ manager.Manager = (*Manager)(nil)

// Add implements [manager.Manager]. It keeps the runnable, see [Manager.Runnables].
func (m *Manager) Add(runnable manager.Runnable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runnables = append(m.runnables, runnable)
	return nil
}

// Runnables returns what was added, in this order.
func (m *Manager) Runnables() []manager.Runnable {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]manager.Runnable(nil), m.runnables...)
}

// Elected implements [manager.Manager].
func (m *Manager) Elected() <-chan struct{} {
	elected := make(chan struct{})
	if m.Leader {
		close(elected)
	}
	return elected
}

// GetLogger implements [manager.Manager]. The logger has a sink, as one without a sink stands for the default logger.
func (m *Manager) GetLogger() logr.Logger { return logr.New(log.NullLogSink{}) }

// GetControllerOptions implements [manager.Manager]. Several managers of a process may have controllers of one name.
func (m *Manager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true)}
}

// GetWebhookServer implements [manager.Manager].
func (m *Manager) GetWebhookServer() webhook.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		m.server = webhook.NewServer(webhook.Options{})
	}
	return m.server
}

// GetConverterRegistry implements [manager.Manager].
func (m *Manager) GetConverterRegistry() conversion.Registry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.registry == nil {
		m.registry = conversion.NewRegistry()
	}
	return m.registry
}

// AddMetricsServerExtraHandler implements [manager.Manager].
func (m *Manager) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

// AddHealthzCheck implements [manager.Manager].
func (m *Manager) AddHealthzCheck(string, healthz.Checker) error { return nil }

// AddReadyzCheck implements [manager.Manager].
func (m *Manager) AddReadyzCheck(string, healthz.Checker) error { return nil }
