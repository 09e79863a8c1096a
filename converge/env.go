// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Env is what a reconciler gets from the process it lives in. After a crash there is another one.
type Env struct {
	// Client is that of a manager: it reads from caches and writes to the API server.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Cache is where Client reads.
	Cache cache.Cache
	// Scheme is that of the scenario.
	Scheme *runtime.Scheme
	// Recorder takes events and forgets them.
	Recorder record.EventRecorder
	// Manager is the manager of the process. Setup is called with it.
	Manager manager.Manager
	// Cloud is a system outside of the cluster.
	Cloud Cloud

	process *process
}

// Call makes a call to a system outside of the cluster that effect stands for. It is a point where faults happen: the
// process crashes before or after the effect, the call fails without an effect, or fails although there was one. The
// name should tell what is done to what, like "create bucket a".
//
// Nobody knows whether a call has changed something, so that calls are no writes for [Idempotence] and [Deletion];
// those of a [Cloud] are. The effect must not wait for anything. A panic in it is one of the reconciler.
func (e Env) Call(ctx context.Context, name string, effect func() error) error {
	return e.process.callOutside(ctx, name, effect)
}

// EnvOf returns what belongs to a manager that Setup was called with, or to one that wraps it and has a method Unwrap.
// It is the zero Env for any other manager.
func EnvOf(mgr manager.Manager) Env {
	for inner := mgr; ; {
		switch m := inner.(type) {
		case *processManager:
			env := m.process.env
			env.Client, env.Manager = mgr.GetClient(), mgr
			return env
		case interface{ Unwrap() manager.Manager }:
			inner = m.Unwrap()
		default:
			return Env{}
		}
	}
}
