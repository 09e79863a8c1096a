// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/internal/offline"
	"trueup.dev/testing/internal/fakeapi"
)

// observedManager is a manager that needs no API server. It keeps the controllers that are added to it.
type observedManager struct {
	offline.Manager

	own *observedCluster

	mu          sync.Mutex
	controllers []*observedController
	others      []*observedCluster
	problems    []error
}

func newManager(scheme *runtime.Scheme, given []client.Object) (*observedManager, error) {
	own, err := newCluster("", scheme, given)
	if err != nil {
		return nil, err
	}
	m := &observedManager{own: own}
	m.Cluster = own.Cluster
	return m, nil
}

// Add keeps controllers. Other runnables are not started.
func (m *observedManager) Add(runnable manager.Runnable) error {
	controller, err := observeController(runnable)
	m.mu.Lock()
	defer m.mu.Unlock()
	if controller != nil {
		m.controllers = append(m.controllers, controller)
	}
	if err != nil {
		m.problems = append(m.problems, err)
	}
	return nil
}

func (m *observedManager) clusters() []*observedCluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*observedCluster{m.own}, m.others...)
}

// takeHandlers returns the event handlers that were added to all caches since the last call.
func (m *observedManager) takeHandlers() []eventHandler {
	handlers := []eventHandler{}
	for _, cluster := range m.clusters() {
		handlers = append(handlers, cluster.cache.takeHandlers()...)
	}
	return handlers
}

// OtherCluster returns a cluster other than the cluster of the manager, which must be the manager of [Observe]. It
// returns the same cluster for the same name. Watches and indexes of the cluster are observed with its name.
func OtherCluster(mgr ctrl.Manager, name string) (ctrlcluster.Cluster, error) {
	m, ok := mgr.(*observedManager)
	if !ok {
		return nil, fmt.Errorf("cluster %q: the manager must be the one of RecordWiring, not a %T", name, mgr)
	}
	if name == "" {
		return nil, errors.New("cluster: a name is required, the one without is that of the manager")
	}
	for _, known := range m.clusters() {
		if known.cache.cluster == name {
			return known, nil
		}
	}
	other, err := newCluster(name, m.Scheme, nil)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.others = append(m.others, other)
	return other, nil
}

// observedCluster is a cluster with objects in memory.
type observedCluster struct {
	offline.Cluster

	cache *observedCache
}

func newCluster(name string, scheme *runtime.Scheme, given []client.Object) (*observedCluster, error) {
	mapper := offline.NewMapper(scheme)
	api, _, err := fakeapi.New(fakeapi.Options{Scheme: scheme, Given: given, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	cache := &observedCache{cluster: name, scheme: scheme, api: api}
	return &observedCluster{cache: cache, Cluster: offline.Cluster{
		Scheme: scheme, Mapper: mapper, Client: &cachedClient{Client: api, cache: cache}, APIReader: api, Cache: cache,
	}}, nil
}
