// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// emptyKinds is a client for Kubernetes' deleter of namespaces. For each kind, the deleter deletes the collection and
// then lists it. Most kinds have no objects in a namespace, and for these one list is enough.
type emptyKinds struct {
	metadata.Interface
	// empty has the lists of kinds without objects, until the deleter asks for them. The keys are kindIn.
	empty *sync.Map
}

type kindIn struct {
	schema.GroupVersionResource
	namespace string
}

func (c emptyKinds) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return emptyKindsOf{Getter: c.Interface.Resource(resource), resource: resource, empty: c.empty}
}

type emptyKindsOf struct {
	metadata.Getter
	resource schema.GroupVersionResource
	empty    *sync.Map
}

func (g emptyKindsOf) Namespace(namespace string) metadata.ResourceInterface {
	return emptyKind{
		ResourceInterface: g.Getter.Namespace(namespace), kind: kindIn{g.resource, namespace}, empty: g.empty,
	}
}

type emptyKind struct {
	metadata.ResourceInterface
	kind  kindIn
	empty *sync.Map
}

func (k emptyKind) DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, list metav1.ListOptions) error {
	found, err := k.ResourceInterface.List(ctx, list)
	if err != nil || len(found.Items) > 0 {
		return k.ResourceInterface.DeleteCollection(ctx, opts, list)
	}
	k.empty.Store(k.kind, found)
	return nil
}

func (k emptyKind) List(ctx context.Context, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if found, ok := k.empty.LoadAndDelete(k.kind); ok {
		return found.(*metav1.PartialObjectMetadataList), nil
	}
	return k.ResourceInterface.List(ctx, opts)
}

// sharedDiscovery discovers the kinds once for all namespaces that were deleted before.
type sharedDiscovery struct {
	discover func() ([]*metav1.APIResourceList, error)

	mu        sync.Mutex
	resources []*metav1.APIResourceList
	fetched   time.Time
	// deleted is when a namespace was last deleted. It can contain objects of a kind that was installed just before.
	deleted time.Time
}

func (d *sharedDiscovery) namespaceDeleted() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deleted = time.Now()
}

func (d *sharedDiscovery) get() ([]*metav1.APIResourceList, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resources != nil && d.fetched.After(d.deleted) {
		return d.resources, nil
	}
	started := time.Now()
	resources, err := d.discover()
	if err == nil {
		d.resources, d.fetched = resources, started
	}
	return resources, err
}
