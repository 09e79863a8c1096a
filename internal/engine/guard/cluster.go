// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/empty"
)

// Cluster wraps the clients of a cluster for reconcilers. It records the kinds that they read and the form of each,
// because only the caches of those kinds matter.
type Cluster struct {
	client  client.Client
	live    client.Reader
	cache   cache.Cache
	journal func(ctx context.Context) *Journal
	// fenced returns an error while writes are refused.
	fenced func() error

	// types holds the Go types that have been read, for fast lookups.
	types sync.Map
	mu    sync.RWMutex
	forms map[schema.GroupKind][]Form
	// watched holds the forms whose informer exists. Asking a cache for another informer would start it.
	watched map[Form]bool
	// selective holds the forms whose cache does not contain all objects.
	selective map[Form]bool
}

// NewCluster returns a Cluster with a client that reads from a cache, a reader that does not, and that cache. journal
// returns the journal of the request of a context, or nil.
func NewCluster(
	cached client.Client, live client.Reader, informers cache.Cache, journal func(ctx context.Context) *Journal,
) *Cluster {
	return &Cluster{
		client: cached, live: live, cache: informers, journal: journal, fenced: func() error { return nil },
		forms: map[schema.GroupKind][]Form{}, watched: map[Form]bool{}, selective: map[Form]bool{},
	}
}

// Fence makes the client return the error of check instead of a write, if it is not nil. It must be called before the
// client is used.
func (c *Cluster) Fence(check func() error) { c.fenced = check }

// Watch records that objects like this one are watched through the cache, so their informer exists. On a nil Cluster it
// does nothing.
func (c *Cluster) Watch(obj client.Object) {
	if c == nil {
		return
	}
	f, err := c.formOf(obj)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched[f] = true
}

// reads records that objects or lists like this one are read.
func (c *Cluster) reads(obj runtime.Object) {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
	default:
		goType := reflect.TypeOf(obj)
		if _, known := c.types.Load(goType); known {
			return
		}
		defer c.types.Store(goType, true)
	}
	f, err := c.formOf(obj)
	if err != nil {
		return
	}
	f.Kind = strings.TrimSuffix(f.Kind, "List")
	kind := f.GroupKind()
	c.mu.RLock()
	known := slices.Contains(c.forms[kind], f)
	c.mu.RUnlock()
	if known {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.forms[kind], f) {
		c.forms[kind] = append(slices.Clip(c.forms[kind]), f)
	}
}

func (c *Cluster) formOf(obj runtime.Object) (Form, error) {
	gvk, err := c.client.GroupVersionKindFor(obj)
	return NewForm(gvk, obj), err
}

func (c *Cluster) formsOf(kind schema.GroupKind) []Form {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.forms[kind]
}

// blank returns an empty object of a form.
func (c *Cluster) blank(f Form) (client.Object, bool) {
	var like runtime.Object
	switch {
	case f.untyped:
		like = &unstructured.Unstructured{}
	case f.metadataOnly:
		like = &metav1.PartialObjectMetadata{}
	}
	obj := empty.Of(f.GroupVersionKind, like, c.client.Scheme())
	return obj, obj != nil
}

// seenUpTo returns the latest resource version that the cache of a form has observed, or "" if it is unknown: for kinds
// that are read but not watched, and for caches that consist of several.
func (c *Cluster) seenUpTo(ctx context.Context, f Form, like client.Object) string {
	c.mu.RLock()
	watched := c.watched[f]
	c.mu.RUnlock()
	if !watched {
		return ""
	}
	informer, err := c.cache.GetInformer(ctx, like, cache.BlockUntilSynced(false))
	if err != nil {
		return ""
	}
	switch informer := informer.(type) {
	case interface{ GetStore() toolscache.Store }:
		if store := informer.GetStore(); store != nil {
			return store.LastStoreSyncResourceVersion()
		}
	case interface{ SeenUpTo() string }: // not an informer of client-go
		return informer.SeenUpTo()
	}
	return ""
}

// blankList returns an empty list of a form.
func (c *Cluster) blankList(f Form) (client.ObjectList, bool) {
	gvk := f.GroupVersionKind
	gvk.Kind += "List"
	switch {
	case f.untyped:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list, true
	case f.metadataOnly:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return list, true
	}
	created, err := c.client.Scheme().New(gvk)
	if err != nil {
		return nil, false
	}
	list, ok := created.(client.ObjectList)
	return list, ok
}
