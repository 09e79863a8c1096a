// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/observe"
)

// member is one engagement of a cluster.
type member struct {
	fleet   *Fleet
	name    string
	cluster cluster.Cluster
	log     logr.Logger
	// ctx ends with the engagement.
	ctx    context.Context //nolint:containedctx // it is how a cluster says that it is gone
	cancel context.CancelFunc
	// ended is closed when nothing of the engagement runs.
	ended chan struct{}

	indexMu sync.Mutex // held while an index is added
	indexed []*index

	mu     sync.Mutex
	state  observe.ClusterState
	view   *view
	failed error // the error of the last attempt to set up or to start the controllers
}

func (f *Fleet) newMember(ctx context.Context, name string, cl cluster.Cluster) *member {
	m := &member{
		fleet: f, name: name, cluster: cl, ended: make(chan struct{}),
		log: f.mgr.GetLogger().WithValues("cluster", name),
	}
	ctx = context.WithValue(logr.NewContext(ctx, m.log), nameKey{}, name)
	ctx, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(f.stopped, cancel)
	m.ctx, m.cancel = ctx, func() { unlink(); cancel() }
	return m
}

// become reports a state. A cluster that is gone remains so.
func (m *member) become(state observe.ClusterState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state == state || m.state == observe.ClusterGone {
		return
	}
	change := observe.ClusterChanged{Cluster: m.name, Before: m.state, State: state}
	m.state = state
	informers := m.cluster.GetCache()
	if informers == m.fleet.mgr.GetCache() {
		informers = cache.Cache(nil) // the manager still uses it
	}
	m.fleet.hub.ReportCluster(m.ctx, change, informers)
	m.log.Info("The state of the cluster has changed", "before", change.Before, "state", state)
}

// setUp calls SetUp, and finds or makes the shared controllers.
func (m *member) setUp() (*view, error) {
	v := &view{Cluster: m.cluster, ofManager: ofManager{m.fleet.mgr}, member: m}
	if err := m.fleet.call(m.ctx, v); err != nil {
		return nil, err
	}
	if len(v.controllers)+len(v.others) == 0 {
		return nil, errors.New("SetUp must set up a controller with the manager that it gets")
	}
	for _, c := range v.controllers {
		var err error
		if c.shared, err = m.fleet.shared(c); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.view = v
	return v, nil
}

// run runs the controllers of the cluster until it is gone. v is nil if they are not set up, because another cluster of
// the same name still ends.
func (m *member) run(v *view, before *member) {
	defer m.leave()
	if before != nil {
		<-before.ended
	}
	select {
	case <-m.fleet.started:
	case <-m.ctx.Done():
		return
	}
	_ = lifecycle.Retry(m.ctx, func(ctx context.Context) (err error) {
		if err := untilDone(ctx, func() error { return m.index(ctx) }); err != nil {
			return err
		}
		now := v
		if v = nil; now == nil { // controllers are started once
			if now, err = m.setUp(); err != nil {
				return fmt.Errorf("set up the controllers: %w", err)
			}
		}
		return m.start(ctx, now)
	}, func(err error, failures int) bool {
		if m.ctx.Err() != nil {
			return false
		}
		m.fail(err)
		m.log.Error(err, "The controllers of the cluster cannot run, trying again", "failures", failures)
		return true
	})
}

func (m *member) fail(err error) {
	m.mu.Lock()
	m.failed = err
	m.mu.Unlock()
	m.become(observe.ClusterStarting)
}

// leave forgets the cluster.
func (m *member) leave() {
	m.cancel()
	m.become(observe.ClusterGone)
	m.fleet.mu.Lock()
	if m.fleet.members[m.name] == m {
		delete(m.fleet.members, m.name)
	}
	m.fleet.mu.Unlock()
	close(m.ended)
}

// index adds the indexes of the fleet that the cluster does not have.
func (m *member) index(ctx context.Context) error {
	m.fleet.mu.Lock()
	all := slices.Clone(m.fleet.indexes)
	m.fleet.mu.Unlock()
	for _, i := range all {
		if err := m.indexOnce(ctx, i); err != nil {
			return fmt.Errorf("index the field %q of %T: %w", i.field, i.object, err)
		}
	}
	return nil
}

func (m *member) indexOnce(ctx context.Context, i *index) error {
	m.indexMu.Lock()
	defer m.indexMu.Unlock()
	if slices.ContainsFunc(m.indexed, i.is) {
		return nil
	}
	err := m.cluster.GetFieldIndexer().IndexField(ctx, i.object, i.field, i.extract)
	if err == nil {
		m.indexed = append(m.indexed, i)
	}
	return err
}

// start starts what SetUp has added. It returns nil after the context has ended, or the first error, when nothing runs.
func (m *member) start(ctx context.Context, v *view) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	wg := sync.WaitGroup{}
	run := func(what func(context.Context) error) {
		wg.Go(func() {
			if err := what(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	start := func(runnable manager.Runnable) {
		run(func(ctx context.Context) error { return m.startOther(ctx, runnable) })
	}
	v.mu.Lock()
	v.start = start
	others := v.others
	v.mu.Unlock()
	caches := []cache.Cache{}
	for _, runnable := range others {
		start(runnable)
		if cached, ok := runnable.(hasCache); ok {
			caches = append(caches, cached.GetCache())
		}
	}
	for _, filled := range caches { // a manager waits for them, too
		filled.WaitForCacheSync(ctx)
	}
	for _, c := range v.controllers {
		run(func(ctx context.Context) error { return m.control(ctx, c) })
	}
	m.update()
	<-ctx.Done()
	v.mu.Lock()
	v.start = func(manager.Runnable) {} // nothing starts any more
	v.mu.Unlock()
	wg.Wait()
	if m.ctx.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// hasCache is implemented by runnables that a manager starts first, and waits for.
type hasCache interface{ GetCache() cache.Cache }

// untilDone calls do, and does not wait for it after the context has ended: caches of controller-runtime send some
// requests without a context.
func untilDone(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startOther starts what is not a controller, when its manager would.
func (m *member) startOther(ctx context.Context, runnable manager.Runnable) error {
	_, cached := runnable.(hasCache)
	if elected, ok := runnable.(manager.LeaderElectionRunnable); !cached && (!ok || elected.NeedLeaderElection()) {
		select {
		case <-m.fleet.mgr.Elected():
		case <-ctx.Done():
			return nil
		}
	}
	return runnable.Start(ctx)
}

// control starts the sources of a controller, and lets the shared controller reconcile when the caches are filled. It
// returns when the context has ended and no reconcile runs.
func (m *member) control(ctx context.Context, c *built) error {
	queue := c.shared.queue(ctx)
	if queue == nil {
		return nil
	}
	l := queue.join(m, c)
	defer func() { <-queue.leave(l) }()
	c.SetWarmup(forever) // an unreachable cluster is waited for
	c.SetNewQueue(func(
		_ string, limiter workqueue.TypedRateLimiter[reconcile.Request],
	) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		queue.limit(l, limiter)
		return &entrance{queue: queue, line: l}
	})
	if err := untilDone(ctx, func() error { return c.Warmup(ctx) }); err != nil {
		return fmt.Errorf("controller %q: %w", c.Name(), err)
	}
	if ctx.Err() == nil {
		queue.open(l)
		m.update()
		<-ctx.Done()
	}
	return nil
}

// forever is longer than a program runs.
const forever = 100 * 365 * 24 * time.Hour

// update sets the state of the cluster from the states of its controllers.
func (m *member) update() {
	m.mu.Lock()
	v, state := m.view, observe.ClusterReady
	m.mu.Unlock()
	for _, c := range v.controllers {
		switch s := c.shared.stateOf(m); {
		case s == observe.ClusterStarting:
			state = s
		case s == observe.ClusterPaused && state == observe.ClusterReady:
			state = s
		}
	}
	if state != observe.ClusterStarting {
		m.mu.Lock()
		m.failed = nil
		m.mu.Unlock()
	}
	m.become(state)
}

// ready returns why the objects of the cluster are not reconciled.
func (m *member) ready() error {
	m.mu.Lock()
	v, state, failed := m.view, m.state, m.failed
	m.mu.Unlock()
	switch {
	case failed != nil:
		return fmt.Errorf("cluster %q: %w", m.name, failed)
	case state == observe.ClusterPaused:
		return fmt.Errorf("cluster %q: reconciles do not end within %s", m.name, m.fleet.options.Timeout)
	case state != observe.ClusterReady:
		return fmt.Errorf("cluster %q: waits for its caches", m.name)
	}
	v.mu.Lock()
	checks := maps.Clone(v.checks)
	v.mu.Unlock()
	request, err := http.NewRequestWithContext(m.ctx, http.MethodGet, "/readyz", nil)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if err := checks[name](request); err != nil {
			return fmt.Errorf("cluster %q: check %q: %w", m.name, name, err)
		}
	}
	return nil
}
