// SPDX-License-Identifier: Apache-2.0

package testing

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

// recordingCache is the cache of a cluster. It notes who watches what, and which indexes it should have.
type recordingCache struct {
	cluster string
	scheme  *runtime.Scheme
	// api is what the cluster holds.
	api     client.Reader
	started atomic.Bool

	mu       sync.Mutex
	handlers []watchHandler
	indexes  []Index
	problems []error
}

// watchHandler is what is told of events of a kind.
type watchHandler struct {
	toolscache.ResourceEventHandler

	kind  schema.GroupVersionKind
	watch Watch
}

var _ cache.Cache = (*recordingCache)(nil)

// takeHandlers returns the handlers that were added since it was called last.
func (c *recordingCache) takeHandlers() []watchHandler {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.handlers
	c.handlers = nil
	return taken
}

func (c *recordingCache) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	if !c.started.Load() {
		return &cache.ErrCacheNotStarted{}
	}
	return c.api.Get(ctx, key, obj, opts...)
}

func (c *recordingCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if !c.started.Load() {
		return &cache.ErrCacheNotStarted{}
	}
	return c.api.List(ctx, list, opts...)
}

// GetInformer never fails: whoever watches tries again and again. A problem is kept for later.
func (c *recordingCache) GetInformer(
	_ context.Context, obj client.Object, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	informer := &recordingInformer{FakeInformer: controllertest.NewFakeInformer(controllertest.Synced), cache: c}
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

func (c *recordingCache) GetInformerForKind(
	ctx context.Context, kind schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	obj, err := c.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	return c.GetInformer(ctx, obj.(client.Object), opts...)
}

func (c *recordingCache) IndexField(_ context.Context, obj client.Object, field string, _ client.IndexerFunc) error {
	if _, err := apiutil.GVKForObject(obj, c.scheme); err != nil {
		return err
	}
	index := Index{Object: blank(obj), Field: field, Cluster: c.cluster}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.indexes {
		if other.text() == index.text() {
			// The words are those of the real cache, and there are callers who look for them.
			return fmt.Errorf("indexer conflict: %s is there already", index.text())
		}
	}
	c.indexes = append(c.indexes, index)
	return nil
}

func (c *recordingCache) RemoveInformer(context.Context, client.Object) error { return nil }
func (c *recordingCache) WaitForCacheSync(context.Context) bool               { return true }

func (c *recordingCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// recordingInformer notes the handlers for one kind.
type recordingInformer struct {
	*controllertest.FakeInformer

	cache  *recordingCache
	kind   schema.GroupVersionKind
	object client.Object
}

func (i *recordingInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (
	toolscache.ResourceEventHandlerRegistration, error,
) {
	i.note(handler)
	return i.FakeInformer.AddEventHandler(handler)
}

func (i *recordingInformer) AddEventHandlerWithResyncPeriod(
	handler toolscache.ResourceEventHandler, resync time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.note(handler)
	return i.FakeInformer.AddEventHandlerWithResyncPeriod(handler, resync)
}

func (i *recordingInformer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.note(handler)
	return i.FakeInformer.AddEventHandlerWithOptions(handler, options)
}

func (i *recordingInformer) note(handler toolscache.ResourceEventHandler) {
	i.cache.mu.Lock()
	defer i.cache.mu.Unlock()
	watch := Watch{Object: i.object, Cluster: i.cache.cluster}
	i.cache.handlers = append(i.cache.handlers, watchHandler{ResourceEventHandler: handler, kind: i.kind, watch: watch})
}

// cachedClient reads from the cache, but for unstructured objects, and writes to the API.
type cachedClient struct {
	client.Client

	cache *recordingCache
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
	// An object may be wrapped in something that its copy is not.
	obj = obj.DeepCopyObject().(client.Object)
	empty := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if carriesKind(obj) {
		empty.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	}
	return empty
}

// carriesKind is true for objects whose Go type does not tell their kind.
func carriesKind(obj client.Object) bool {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		return true
	default:
		return false
	}
}
