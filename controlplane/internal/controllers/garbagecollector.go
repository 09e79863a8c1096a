// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

const (
	// kube-controller-manager checks for new kinds every 30 s. This is too slow for a test that installs a CRD and deletes
	// an owner.
	collectorPeriod = 200 * time.Millisecond

	// For this long after a change of a CRD or an APIService, discovery is queried in each period, because the change is
	// served shortly after it is observed.
	discoveryUnsettled = 5 * time.Second

	// Without a change, discovery is queried this often.
	discoveryMaxAge = 30 * time.Second
)

// collector is Kubernetes' garbage collector, which is notified of new and removed kinds immediately.
type collector struct {
	*garbagecollector.GarbageCollector
	graph *garbagecollector.GraphBuilder
}

func newCollector(ctx context.Context, s setup) (runFunc, error) {
	metadataClient, err := metadata.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	graph := garbagecollector.NewDependencyGraphBuilder(
		ctx, metadataClient, s.mapper, garbagecollector.DefaultIgnoredResources(), s.kinds, s.started,
	)
	gc, err := garbagecollector.NewComposedGarbageCollector(ctx, s.client, metadataClient, s.mapper, graph)
	if err != nil {
		return nil, err
	}
	watched := &watchedDiscovery{ServerResourcesInterface: s.client.Discovery(), kinds: s.kinds}
	for _, resource := range []schema.GroupVersionResource{
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	} {
		informer, err := s.kinds.ForResource(resource)
		if err != nil {
			return nil, err
		}
		if _, err := informer.Informer().AddEventHandler(watched.invalidator()); err != nil {
			return nil, err
		}
	}
	s.gc = &collector{GarbageCollector: gc, graph: graph}
	workers := int(s.settings.GarbageCollectorController.ConcurrentGCSyncs)
	return concurrently(
		func(ctx context.Context) { gc.Run(ctx, workers, syncTimeout) },
		func(ctx context.Context) { gc.Sync(ctx, watched, collectorPeriod) },
	), nil
}

func (c *collector) synced() bool { return c.IsSynced(klog.Background()) }

// watchedDiscovery caches the result until a CRD or an APIService changes, so that frequent queries are cheap.
type watchedDiscovery struct {
	discovery.ServerResourcesInterface
	kinds *kindInformers

	mu          sync.Mutex
	resources   []*metav1.APIResourceList
	err         error
	fetched     time.Time
	unsettledTo time.Time
}

func (d *watchedDiscovery) invalidator() cache.ResourceEventHandler {
	invalidate := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.unsettledTo = time.Now().Add(discoveryUnsettled)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { invalidate() },
		UpdateFunc: func(any, any) { invalidate() },
		DeleteFunc: func(any) { invalidate() },
	}
}

// ServerPreferredResources is called by the collector. It must not be called concurrently.
func (d *watchedDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	d.mu.Lock()
	now := time.Now()
	if d.resources != nil && now.After(d.unsettledTo) && now.Sub(d.fetched) < discoveryMaxAge {
		defer d.mu.Unlock()
		return d.resources, d.err
	}
	d.mu.Unlock()

	resources, err := d.ServerResourcesInterface.ServerPreferredResources()
	if err == nil {
		d.kinds.forgetAllBut(resources)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resources, d.err, d.fetched = resources, err, now
	return resources, err
}
