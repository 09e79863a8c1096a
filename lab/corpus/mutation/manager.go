// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
	"trueup.dev/internal/ctrlfields"
)

// intercept sends all requests of a scenario's reconciler through an interceptor. Each process gets a new one, because
// the reconcilers of the corpus must not share memory between processes, and neither must their mistakes.
func intercept(s converge.Scenario, by func(client.Client, client.Reader) interceptor) converge.Scenario {
	if create := s.New; create != nil {
		s.New = func(env converge.Env) reconcile.Reconciler {
			i := by(env.Client, env.APIReader)
			env.Client = intercepted(env.Client, i)
			return reconciler(create(env), i)
		}
	}
	if setup := s.Setup; setup != nil {
		s.Setup = func(mgr manager.Manager) error {
			i := by(mgr.GetClient(), mgr.GetAPIReader())
			return setup(&interceptedManager{Manager: mgr, client: intercepted(mgr.GetClient(), i), by: i})
		}
	}
	return s
}

// interceptedManager is a manager whose client and reconcilers are intercepted.
type interceptedManager struct {
	manager.Manager

	client client.Client
	by     interceptor
}

func (m *interceptedManager) GetClient() client.Client { return m.client }

// Unwrap returns the manager of the scenario, for [converge.EnvOf].
func (m *interceptedManager) Unwrap() manager.Manager { return m.Manager }

// Add passes the reconciles of a controller to the interceptor.
func (m *interceptedManager) Add(runnable manager.Runnable) error {
	if c, ok := ctrlfields.ControllerOf(runnable); ok {
		c.WrapReconciler(func(inner reconcile.Reconciler) reconcile.Reconciler { return reconciler(inner, m.by) })
	}
	return m.Manager.Add(runnable)
}

// writes are the deferred writes of a reconcile.
type writes struct {
	mu   sync.Mutex
	held []*request
}

type writesKey struct{}

// writesOf returns the deferred writes of the reconcile of a context, or nil outside of reconciles.
func writesOf(ctx context.Context) *writes {
	w, _ := ctx.Value(writesKey{}).(*writes)
	return w
}

// reconciler passes reconciles to an interceptor.
func reconciler(inner reconcile.Reconciler, by interceptor) reconcile.Reconciler {
	if inner == nil {
		return nil
	}
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		ctx = context.WithValue(ctx, writesKey{}, &writes{})
		result, err := inner.Reconcile(ctx, req)
		if late := by.end(ctx); late != nil {
			return reconcile.Result{}, errors.Join(err, late)
		}
		return result, err
	})
}
