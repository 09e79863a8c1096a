// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"weak"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/internal/objects/weakmap"
)

// ClusterState is the state of one cluster of a program that reconciles the objects of several.
type ClusterState string

const (
	// ClusterStarting means that a controller does not reconcile the objects of the cluster yet: it waits for its caches.
	ClusterStarting ClusterState = "Starting"
	// ClusterReady means that the objects of the cluster are reconciled.
	ClusterReady ClusterState = "Ready"
	// ClusterPaused means that reconciles of the cluster have not ended in time, and that one is tried again now and then.
	ClusterPaused ClusterState = "Paused"
	// ClusterGone means that nothing of the cluster runs any longer. Listeners drop what they have of the cluster.
	ClusterGone ClusterState = "Gone"
)

// ClusterChanged means that the state of a cluster has changed, see package clusters. It belongs to no run.
type ClusterChanged struct {
	Cluster string
	// Before is the former state. It is empty for a cluster that is new.
	Before, State ClusterState
}

func (*ClusterChanged) event() {}

// ReportCluster reports that the state of a cluster has changed. If the cluster is gone, it drops what the hub has of
// the cluster and of its cache, which may be nil.
func (h *Hub) ReportCluster(ctx context.Context, change ClusterChanged, informers cache.Cache) {
	h.Observe(ctx, &change)
	if h == nil || change.State != ClusterGone {
		return
	}
	h.controllers.Range(func(key, value any) bool {
		if value.(observed).cluster == change.Cluster {
			h.controllers.Delete(key)
		}
		return true
	})
	if informers == nil {
		return
	}
	id := weak.Make(weakmap.Address(informers))
	h.watched.Range(func(key, _ any) bool {
		if key.(watchedType).cache == id {
			h.watched.Delete(key)
		}
		return true
	})
}

// observed is a controller of a hub.
type observed struct {
	name, cluster string
	observer      weak.Pointer[controllerObserver] // the hub must not keep the manager in memory
}

// InCluster returns the part of a manager that belongs to one cluster of several, which may be wrapped in other
// managers, and the name of the cluster. It returns nil for other managers.
func InCluster(mgr manager.Manager) (part manager.Manager, name string) {
	for _, m := range unwrap(mgr) {
		if named, ok := m.(interface{ ClusterName() string }); ok {
			return m, named.ClusterName()
		}
	}
	return nil, ""
}

// ClusterOf returns the name that [InCluster] returns.
func ClusterOf(mgr manager.Manager) string {
	_, name := InCluster(mgr)
	return name
}

// unwrap returns a manager and the managers that it wraps, the outermost first.
func unwrap(mgr manager.Manager) (all []manager.Manager) {
	for {
		all = append(all, mgr)
		wrapper, ok := mgr.(interface{ Unwrap() manager.Manager })
		if !ok {
			return all
		}
		mgr = wrapper.Unwrap()
	}
}

// fullName returns the name of a controller, with an @ and the name of the cluster behind it if there is one.
func fullName(controller, cluster string) string {
	if cluster == "" {
		return controller
	}
	return controller + "@" + cluster
}
