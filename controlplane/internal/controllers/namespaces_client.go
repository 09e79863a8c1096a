// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"k8s.io/kube-aggregator/pkg/controllers/autoregister"
	"k8s.io/kubernetes/pkg/kubeapiserver"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Stored reports whether etcd has a key with a prefix.
type Stored func(ctx context.Context, prefix string) (bool, error)

// emptyKinds is a client for Kubernetes' deleter of namespaces. For each kind, the deleter deletes the collection and
// then lists it. Most kinds have no objects in a namespace. For those that kube-apiserver itself serves, a look into
// etcd shows that without a request; of the others, one list does.
type emptyKinds struct {
	metadata.Interface
	stored Stored
	served *sharedDiscovery
	// empty has the kinds without objects, until the deleter asks for them. The keys are kindIn.
	empty *sync.Map
}

type kindIn struct {
	schema.GroupVersionResource
	namespace string
}

func (c emptyKinds) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return emptyKindsOf{Getter: c.Interface.Resource(resource), resource: resource, kinds: c}
}

type emptyKindsOf struct {
	metadata.Getter
	resource schema.GroupVersionResource
	kinds    emptyKinds
}

func (g emptyKindsOf) Namespace(namespace string) metadata.ResourceInterface {
	return emptyKind{
		ResourceInterface: g.Getter.Namespace(namespace), kind: kindIn{g.resource, namespace}, kinds: g.kinds,
	}
}

type emptyKind struct {
	metadata.ResourceInterface
	kind  kindIn
	kinds emptyKinds
}

func (k emptyKind) DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, list metav1.ListOptions) error {
	if !k.isEmpty(ctx, list) {
		return k.ResourceInterface.DeleteCollection(ctx, opts, list)
	}
	k.kinds.empty.Store(k.kind, nil)
	return nil
}

// isEmpty reports whether the kind is known to have no objects in the namespace.
func (k emptyKind) isEmpty(ctx context.Context, list metav1.ListOptions) bool {
	if !k.kinds.served.isLocal(k.kind.GroupVersion()) {
		found, err := k.ResourceInterface.List(ctx, list)
		return err == nil && len(found.Items) == 0
	}
	for _, directory := range directories(k.kind.GroupResource()) {
		found, err := k.kinds.stored(ctx, "/registry/"+directory+"/"+k.kind.namespace+"/")
		if err != nil || found {
			return false
		}
	}
	return true
}

// directories returns where kube-apiserver may keep the objects of a kind in etcd: kinds of Kubernetes below their
// plural name or below what upstream lists, custom resources below their group.
func directories(resource schema.GroupResource) []string {
	directories := []string{resource.Resource, resource.Group + "/" + resource.Resource}
	if special, ok := kubeapiserver.SpecialDefaultResourcePrefixes[resource]; ok {
		directories = append(directories, special)
	}
	return directories
}

func (k emptyKind) List(ctx context.Context, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if _, ok := k.kinds.empty.LoadAndDelete(k.kind); ok {
		return &metav1.PartialObjectMetadataList{}, nil
	}
	return k.ResourceInterface.List(ctx, opts)
}

// sharedDiscovery discovers the kinds once for all namespaces that were deleted before.
type sharedDiscovery struct {
	discover func() ([]*metav1.APIResourceList, error)
	// local returns the group versions that kube-apiserver serves itself.
	local func() (sets.Set[schema.GroupVersion], error)

	mu        sync.Mutex
	resources []*metav1.APIResourceList
	locals    sets.Set[schema.GroupVersion]
	fetched   time.Time
	// deleted is when a namespace was last deleted. It can contain objects of a kind that was installed just before.
	deleted time.Time
}

func newSharedDiscovery(kinds discovery.DiscoveryInterface, services metadata.Getter) *sharedDiscovery {
	return &sharedDiscovery{
		discover: kinds.ServerPreferredNamespacedResources,
		local:    func() (sets.Set[schema.GroupVersion], error) { return localVersions(services) },
	}
}

// localVersions returns the group versions whose APIServices kube-apiserver has registered for what it serves itself.
func localVersions(services metadata.Getter) (sets.Set[schema.GroupVersion], error) {
	registered, err := services.List(
		context.Background(), metav1.ListOptions{LabelSelector: autoregister.AutoRegisterManagedLabel})
	if err != nil {
		return nil, err
	}
	local := sets.New[schema.GroupVersion]()
	for _, service := range registered.Items {
		version, group, _ := strings.Cut(service.Name, ".")
		local.Insert(schema.GroupVersion{Group: group, Version: version})
	}
	return local, nil
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
	if err != nil {
		return resources, err
	}
	if d.locals, err = d.local(); err != nil {
		klog.ErrorS(err, "Cannot list APIServices; all kinds are listed instead")
	}
	d.resources, d.fetched = resources, started
	return resources, nil
}

func (d *sharedDiscovery) isLocal(version schema.GroupVersion) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.locals.Has(version)
}
