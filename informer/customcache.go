// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/cacheapi"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
	"trueup.dev/resource"
)

var _ Informer = (*CustomCache)(nil)

// CustomCache is an [Informer] that keeps objects in a [Store], which may be outside of the process. In memory
// it keeps an entry of about 250 bytes for each object: its name, UID, version and a hash of the stored value. It
// gives these guarantees, whatever the store does:
//
//   - Handlers receive every change. If the store rejects an object, reads get it from the API server.
//   - Handlers receive every deletion. This includes deletions during a lost connection to the API server, and
//     objects that the store has lost. Handlers then receive the known part of the object, which may be only its
//     metadata.
//   - A read returns the last state that the API server sent, or a newer one. The hash detects entries that are
//     missing, old, damaged or written by another client. The informer then reads from the API server. The metric
//     trueup_informer_live_reads_total counts these reads, and trueup_informer_store_errors_total counts failures of
//     the store.
//   - A new process starts from the state of the API server, not from the content of the store: handlers receive all
//     objects.
//
// Update events contain the previous object if the store has it. Otherwise they contain only its name, UID, version
// and generation.
//
// Reads must use the form of the informer. Call IndexField before the start to index fields. Lists are unordered and
// not paged. To save memory, set the PreviousState of handlers to [trueup.dev/operator.PreviousMetadata] or
// [trueup.dev/operator.PreviousNone]; otherwise handlers keep objects in memory themselves.
type CustomCache struct {
	object    client.Object
	gvk       schema.GroupVersionKind
	form      guard.Form
	scheme    *runtime.Scheme
	selection selection
	store     *checkedStore
	live      client.Reader
	newList   func() client.ObjectList
	feeds     []*feed
	entries   *entries
	listeners *listeners

	mu      sync.Mutex
	started bool
	removed bool
	stop    context.CancelFunc
	// synced is closed when all objects are known, stopped when the informer has ended.
	synced, stopped chan struct{}
}

// NewCustomCache returns an informer of a kind over a store. It makes no request and starts nothing.
func NewCustomCache(
	kind resource.Kind, cluster cluster.Cluster, store Store, options Options,
) (*CustomCache, error) {
	s, err := options.selection(kind)
	if err != nil {
		return nil, err
	}
	if nilcheck.IsNil(cluster) {
		return nil, fmt.Errorf("informer of %s must have a cluster", kind)
	}
	if options.ShardFilter != nil {
		return nil, fmt.Errorf(
			"informer of %s must not have a ShardFilter, use CustomCacheSupplier instead", kind,
		)
	}
	if nilcheck.IsNil(store) {
		return nil, fmt.Errorf("informer of %s must have a store", kind)
	}
	c, err := newCustomCache(s, cluster.GetScheme(), cluster.GetAPIReader(), store)
	if err != nil {
		return nil, fmt.Errorf("make the informer of %s: %w", kind, err)
	}
	namespaces := options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		source := lazyListWatch(func() (toolscache.ListerWatcher, error) {
			return listWatch(cluster, s, options, namespace)
		})
		c.addFeed(namespace, source).onError = options.onWatchError
	}
	return c, nil
}

// CustomCacheSupplier returns a supplier of informers over stores. storeFor returns the store for a kind; it
// may return the same store for all kinds.
func CustomCacheSupplier(storeFor func(kind resource.Kind) (Store, error)) Supplier {
	return func(kind resource.Kind, cluster cluster.Cluster, options Options) (Informer, error) {
		if storeFor == nil {
			return nil, fmt.Errorf("informer of %s must have a function that returns its store", kind)
		}
		store, err := storeFor(kind)
		if err != nil {
			return nil, fmt.Errorf("make the store of %s: %w", kind, err)
		}
		filter := options.ShardFilter
		options.ShardFilter = nil
		informer, err := NewCustomCache(kind, cluster, store, options)
		if err != nil {
			return nil, err
		}
		return sharded(informer, filter), nil
	}
}

func newCustomCache(
	s selection, scheme *runtime.Scheme, live client.Reader, store Store,
) (*CustomCache, error) {
	gvk, err := apiutil.GVKForObject(s.object, scheme)
	if err != nil {
		return nil, err
	}
	newList, err := listsOf(gvk, s.object, scheme)
	if err != nil {
		return nil, err
	}
	c := &CustomCache{
		object: s.object, gvk: gvk, form: guard.NewForm(gvk, s.object), scheme: scheme, selection: s,
		store: newCheckedStore(store, gvk, s.object), live: live, newList: newList,
		entries: newEntries(), synced: make(chan struct{}), stopped: make(chan struct{}),
	}
	c.listeners = &listeners{informer: c}
	return c, nil
}

// Object implements [Informer].
func (c *CustomCache) Object() client.Object { return c.object }

// reportTo sets the hub that receives the events of the store.
func (c *CustomCache) reportTo(hub *observe.Hub) { c.store.hub.Store(hub) }

// empty returns an empty object that the caller may change.
func (c *CustomCache) empty() client.Object { return c.object.DeepCopyObject().(client.Object) }

// Start lists and watches until the context ends. It returns after all of its goroutines have ended.
func (c *CustomCache) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	if c.started {
		c.mu.Unlock()
		return fmt.Errorf("informer of %s was started already", c.gvk.GroupKind())
	}
	c.started, c.stop = true, cancel
	removed := c.removed
	c.mu.Unlock()
	defer close(c.stopped)
	if removed {
		return nil
	}

	var running sync.WaitGroup
	c.listeners.start(ctx)
	for _, f := range c.feeds {
		running.Go(func() { f.run(ctx) })
	}
	<-ctx.Done()
	running.Wait()
	c.listeners.wait()
	return nil
}

// WaitForCacheSync waits until all objects are known. It returns false if the context or the informer ends first.
func (c *CustomCache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.synced:
		return true
	case <-c.stopped:
	case <-ctx.Done():
	}
	return isClosed(c.synced)
}

// GetInformer returns the source of events. By default it waits until all objects are known. The object must have the
// kind and form of the informer.
func (c *CustomCache) GetInformer(
	ctx context.Context, obj client.Object, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	if err := c.is(obj); err != nil {
		return nil, err
	}
	c.mu.Lock()
	started, removed := c.started, c.removed
	c.mu.Unlock()
	if removed {
		return nil, fmt.Errorf("informer of %s was removed", c.gvk.GroupKind())
	}
	options := cacheapi.InformerGetOptions{}
	for _, apply := range opts {
		apply(&options)
	}
	wait := options.BlockUntilSynced == nil || *options.BlockUntilSynced
	if started && wait && !c.WaitForCacheSync(ctx) {
		return nil, c.notSynced(ctx)
	}
	return c.listeners, nil
}

// GetInformerForKind is GetInformer for the informer's kind. It returns an error if the informer's form is not the Go
// type of the kind.
func (c *CustomCache) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	obj, err := c.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	object, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not a kind of objects", gvk)
	}
	return c.GetInformer(ctx, object, opts...)
}

// RemoveInformer stops the informer. It cannot be started again.
func (c *CustomCache) RemoveInformer(_ context.Context, obj client.Object) error {
	if err := c.is(obj); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removed = true
	if c.stop != nil {
		c.stop()
	}
	return nil
}

// IndexField adds an index, which allows lists by this field. It must be called before the start.
func (c *CustomCache) IndexField(
	_ context.Context, obj client.Object, field string, extract client.IndexerFunc,
) error {
	if err := c.is(obj); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return fmt.Errorf("index %s of %s: the informer was started already", field, c.gvk.GroupKind())
	}
	return c.entries.addIndex(field, extract)
}

// is returns an error for objects and lists that are not of the informer's kind and form.
func (c *CustomCache) is(obj runtime.Object) error {
	if !(route{form: c.form, scheme: c.scheme}).is(obj) {
		return fmt.Errorf("this informer provides objects of %s as %T, got %T", c.gvk.GroupKind(), c.object, obj)
	}
	return nil
}

func (c *CustomCache) notSynced(ctx context.Context) error {
	return errors.Join(fmt.Errorf("informer of %s: %w", c.gvk.GroupKind(), lifecycle.ErrNotSynced), ctx.Err())
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
