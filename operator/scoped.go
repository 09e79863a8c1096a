// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"net/http"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// scopedManager is a view of a manager. Everything that is added through it stops when its scope ends; the manager
// continues.
type scopedManager struct {
	ctrl.Manager
	scope context.Context
	// running reports whether the manager may already run: then it accepts no checks.
	running bool
}

// Unwrap returns the manager. Package observe uses it.
func (m *scopedManager) Unwrap() ctrl.Manager { return m.Manager }

func (m *scopedManager) Add(runnable manager.Runnable) error {
	scoped := scopedRunnable{runnable, m.scope}
	if cached, ok := runnable.(hasCache); ok {
		return m.Manager.Add(scopedCache{scoped, cached})
	}
	return m.Manager.Add(scoped)
}

func (m *scopedManager) AddReadyzCheck(name string, check healthz.Checker) error {
	if m.running {
		return nil
	}
	return m.Manager.AddReadyzCheck(name, func(req *http.Request) error {
		if ended(m.scope) {
			return nil
		}
		return check(req)
	})
}

// ended reports whether a context is done.
func ended(ctx context.Context) bool { return ctx.Err() != nil }

type scopedRunnable struct {
	manager.Runnable
	scope context.Context
}

func (r scopedRunnable) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.scope, cancel)()
	return r.Runnable.Start(ctx)
}

func (r scopedRunnable) NeedLeaderElection() bool {
	elected, ok := r.Runnable.(manager.LeaderElectionRunnable)
	return !ok || elected.NeedLeaderElection()
}

// hasCache is implemented by runnables that a manager starts first, and waits for.
type hasCache interface{ GetCache() cache.Cache }

type scopedCache struct {
	scopedRunnable
	hasCache
}

func (c scopedCache) GetCache() cache.Cache { return scopedSync{c.hasCache.GetCache(), c.scope} }

// scopedSync is a cache for which the manager stops waiting when its scope ends.
type scopedSync struct {
	cache.Cache
	scope context.Context
}

func (s scopedSync) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.scope, cancel)()
	return s.Cache.WaitForCacheSync(ctx) || ended(s.scope)
}
