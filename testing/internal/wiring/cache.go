// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
)

// observedCache is the cache of a cluster. It records event handlers and indexes, and reads from the API.
type observedCache struct {
	cluster string
	scheme  *runtime.Scheme
	// api has the objects of the cluster.
	api     client.Reader
	started atomic.Bool

	mu       sync.Mutex
	handlers []eventHandler
	indexes  []Index
	problems []error
}

// eventHandler is a handler of the events of a kind.
type eventHandler struct {
	toolscache.ResourceEventHandler

	kind  schema.GroupVersionKind
	watch Watch
}

var _ cache.Cache = (*observedCache)(nil)

// takeHandlers returns the handlers that were added since the last call.
func (c *observedCache) takeHandlers() []eventHandler {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.handlers
	c.handlers = nil
	return taken
}

func (c *observedCache) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	if !c.started.Load() {
		return &cache.ErrCacheNotStarted{}
	}
	return c.api.Get(ctx, key, obj, opts...)
}

func (c *observedCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if !c.started.Load() {
		return &cache.ErrCacheNotStarted{}
	}
	return c.api.List(ctx, list, opts...)
}

// GetInformer never fails, as sources retry until their timeout. It keeps problems for the end.
func (c *observedCache) GetInformer(
	_ context.Context, obj client.Object, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	informer := &observedInformer{FakeInformer: controllertest.NewFakeInformer(controllertest.Synced), cache: c}
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.problems = append(c.problems, fmt.Errorf("watch %T: %w", obj, err))
		return informer.FakeInformer, nil
	}
	informer.kind, informer.object = kind, blank(obj)
	return informer, nil
}

func (c *observedCache) GetInformerForKind(
	ctx context.Context, kind schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	obj, err := c.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	return c.GetInformer(ctx, obj.(client.Object), opts...)
}

func (c *observedCache) IndexField(_ context.Context, obj client.Object, field string, _ client.IndexerFunc) error {
	if _, err := apiutil.GVKForObject(obj, c.scheme); err != nil {
		return err
	}
	index := Index{Object: blank(obj), Field: field, Cluster: c.cluster}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.indexes {
		if other.String() == index.String() {
			// The text begins as the text of the real cache, which callers match.
			return fmt.Errorf("indexer conflict: %s already exists", index)
		}
	}
	c.indexes = append(c.indexes, index)
	return nil
}

func (c *observedCache) RemoveInformer(context.Context, client.Object) error { return nil }
func (c *observedCache) WaitForCacheSync(context.Context) bool               { return true }

func (c *observedCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// observedInformer records the handlers of one kind.
type observedInformer struct {
	*controllertest.FakeInformer

	cache  *observedCache
	kind   schema.GroupVersionKind
	object client.Object
}

func (i *observedInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (
	toolscache.ResourceEventHandlerRegistration, error,
) {
	i.record(handler)
	return i.FakeInformer.AddEventHandler(handler)
}

func (i *observedInformer) AddEventHandlerWithResyncPeriod(
	handler toolscache.ResourceEventHandler, resync time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.record(handler)
	return i.FakeInformer.AddEventHandlerWithResyncPeriod(handler, resync)
}

func (i *observedInformer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.record(handler)
	return i.FakeInformer.AddEventHandlerWithOptions(handler, options)
}

func (i *observedInformer) record(handler toolscache.ResourceEventHandler) {
	i.cache.mu.Lock()
	defer i.cache.mu.Unlock()
	watch := Watch{Object: i.object, Cluster: i.cache.cluster}
	i.cache.handlers = append(i.cache.handlers, eventHandler{ResourceEventHandler: handler, kind: i.kind, watch: watch})
}

// cachedClient writes to the API. It reads unstructured objects from the API and all others from the cache.
type cachedClient struct {
	client.Client

	cache *observedCache
}

func (c *cachedClient) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	if _, ok := obj.(runtime.Unstructured); ok {
		return c.Client.Get(ctx, key, obj, opts...)
	}
	return c.cache.Get(ctx, key, obj, opts...)
}

func (c *cachedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(runtime.Unstructured); ok {
		return c.Client.List(ctx, list, opts...)
	}
	return c.cache.List(ctx, list, opts...)
}

// blank returns an empty object of the same kind and form.
func blank(obj client.Object) client.Object {
	// The copy of a wrapped object may be unwrapped.
	obj = obj.DeepCopyObject().(client.Object)
	empty := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if carriesKind(obj) {
		empty.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	}
	return empty
}

// carriesKind reports whether the kind of an object is not implied by its Go type.
func carriesKind(obj client.Object) bool {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		return true
	default:
		return false
	}
}
