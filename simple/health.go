// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"cmp"
	"maps"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// probedManager is a manager that serves its checks itself. A manager of controller-runtime listens on the port of the
// checks as soon as it is made, and keeps the port even if it never starts.
type probedManager struct {
	ctrl.Manager
	live, ready probes
}

// newProbedManager makes a manager that opens no port before it starts.
func newProbedManager(kubeConfig *rest.Config, options ctrl.Options) (*probedManager, error) {
	address := options.HealthProbeBindAddress
	options.HealthProbeBindAddress = "0"
	made, err := ctrl.NewManager(kubeConfig, options)
	if err != nil {
		return nil, err
	}
	m := &probedManager{Manager: made}
	if address == "" || address == "0" {
		return m, nil
	}
	mux := http.NewServeMux()
	m.live.serve(mux, cmp.Or(options.LivenessEndpointName, "/healthz"))
	m.ready.serve(mux, cmp.Or(options.ReadinessEndpointName, "/readyz"))
	return m, made.Add(&manager.Server{
		Name: "health probe", Server: &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 32 * time.Second},
	})
}

func (m *probedManager) AddHealthzCheck(name string, check healthz.Checker) error {
	return m.live.add(name, check)
}

func (m *probedManager) AddReadyzCheck(name string, check healthz.Checker) error {
	return m.ready.add(name, check)
}

// probes are the checks at one path.
type probes struct {
	mu     sync.Mutex
	checks map[string]healthz.Checker
}

func (p *probes) add(name string, check healthz.Checker) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checks == nil {
		p.checks = map[string]healthz.Checker{}
	}
	p.checks[name] = check
	return nil
}

// serve serves all checks at path, and each of them below it.
func (p *probes) serve(mux *http.ServeMux, path string) {
	handler := http.StripPrefix(path, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p.mu.Lock()
		checks := maps.Clone(p.checks)
		p.mu.Unlock()
		(&healthz.Handler{Checks: checks}).ServeHTTP(w, req)
	}))
	mux.Handle(path, handler)
	mux.Handle(path+"/", handler)
}
