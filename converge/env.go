// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge/internal/sim"
)

// Env is the environment that a process provides to a reconciler. After a crash there is a new one.
type Env struct {
	// Client is the client of the manager: it reads from caches and writes to the API server.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Cache is where Client reads from.
	Cache cache.Cache
	// Scheme is the Scheme of the scenario.
	Scheme *runtime.Scheme
	// Recorder drops all events.
	Recorder record.EventRecorder
	// Manager is the manager of the process, with which Setup is called. Clients of its GetConfig, for example clientsets
	// and dynamic clients of client-go, send their requests to the API server of the scenario, with faults. Their watches
	// and informers receive events at once, without faults.
	Manager manager.Manager
	// Cloud is a system outside of the cluster.
	Cloud Cloud

	process *sim.Process
}

// Call makes a call to a system outside of the cluster that effect stands for. Faults are injected there: the process
// crashes before or after the effect, or the call fails with or without an effect. The name should describe the call,
// for example "create bucket a".
//
// With [Scenario.Outside], a call that changes the content of the external systems is a write for [OracleIdempotence].
// Without it, the result of a call is unknown. Only calls of a [Cloud] are writes for the check of finalizers of
// [OracleDeletion]. The effect must not wait for anything. A panic of effect is one of the reconciler.
func (e Env) Call(ctx context.Context, name string, effect func() error) error {
	return e.process.CallOutside(ctx, name, effect)
}

// newEnv returns the environment that a process provides.
func newEnv(p *sim.Process) Env {
	return Env{
		Client: p.Client, APIReader: p.APIReader, Cache: p.Cache, Scheme: p.Manager.GetScheme(), Recorder: p.Recorder,
		Manager: p.Manager, Cloud: Cloud{process: p}, process: p,
	}
}

// EnvOf returns the environment of a manager that Setup was called with, or of one that wraps it and has a method
// Unwrap. It returns the zero Env for other managers.
func EnvOf(mgr manager.Manager) Env {
	for inner := mgr; ; {
		if p := sim.ProcessOf(inner); p != nil {
			env := newEnv(p)
			env.Client, env.Manager = mgr.GetClient(), mgr
			return env
		}
		m, ok := inner.(interface{ Unwrap() manager.Manager })
		if !ok {
			return Env{}
		}
		inner = m.Unwrap()
	}
}
