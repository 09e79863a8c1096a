// SPDX-License-Identifier: Apache-2.0

package operator

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

	"trueup.dev/internal/guard"
	"trueup.dev/internal/nilcheck"
	"trueup.dev/resource"
)

var _ Informer = (*CustomCacheInformer)(nil)

// CustomCacheInformer is an [Informer] that keeps objects in a [Store], outside of the process perhaps, and in memory
// only what it needs to know that nothing is lost: for each object its name, UID, version, and a hash of the entry,
// about 250 bytes. Whatever the store does:
//
//   - Every change is told. An object that the store could not take is read from the API server when somebody asks for
//     it.
//   - Every deletion is told, also one that happened while there was no connection to the API server, and of an object
//     that the store has lost. Handlers then get what is left of the object, perhaps no more than its metadata.
//   - What was read is what the API server has sent last, or something newer. Entries that are missing, old, damaged or
//     of others are found out by the hash, and then the API server is asked. Those reads are counted by the metric
//     trueup_informer_live_reads_total, failures of the store by trueup_informer_store_errors_total.
//   - A new process starts from what the API server has, not from what it finds in the store: handlers are told of all
//     objects.
//
// Update events have the previous object if the store has it, and else just its metadata: name, UID, version and
// generation.
//
// Objects are read in one form, that of the informer, and indexed by fields that were given to IndexField before the
// start. Lists are not paged, and not in any order. To save memory set PreviousState to [PreviousMetadata] or
// [PreviousNone] in handlers, which otherwise remember objects themselves.
type CustomCacheInformer struct {
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

// NewCustomCacheInformer returns an informer of a kind over a store. It makes no request and starts nothing.
func NewCustomCacheInformer(
	kind resource.Kind, cluster cluster.Cluster, store Store, options InformerOptions,
) (*CustomCacheInformer, error) {
	s, err := options.selection(kind)
	if err != nil {
		return nil, err
	}
	if nilcheck.IsNil(cluster) {
		return nil, fmt.Errorf("informer of %s must have a cluster", kind)
	}
	if options.ShardFilter != nil {
		return nil, fmt.Errorf(
			"informer of %s does not have a ShardFilter, unless CustomCacheInformerSupplier makes it", kind,
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
		source := &lazyListWatch{
			find: func() (toolscache.ListerWatcher, error) { return listWatch(cluster, s, options, namespace) },
		}
		c.addFeed(namespace, source).onError = options.onWatchError
	}
	return c, nil
}

// CustomCacheInformerSupplier makes informers over stores. The function returns the store for a kind, which may be the
// same for all.
func CustomCacheInformerSupplier(storeFor func(kind resource.Kind) (Store, error)) InformerSupplier {
	return func(kind resource.Kind, cluster cluster.Cluster, options InformerOptions) (Informer, error) {
		if storeFor == nil {
			return nil, fmt.Errorf("informer of %s must have a function that returns its store", kind)
		}
		store, err := storeFor(kind)
		if err != nil {
			return nil, fmt.Errorf("make the store of %s: %w", kind, err)
		}
		filter := options.ShardFilter
		options.ShardFilter = nil
		informer, err := NewCustomCacheInformer(kind, cluster, store, options)
		if err != nil {
			return nil, err
		}
		return sharded(informer, filter), nil
	}
}

func newCustomCache(
	s selection, scheme *runtime.Scheme, live client.Reader, store Store,
) (*CustomCacheInformer, error) {
	gvk, err := apiutil.GVKForObject(s.object, scheme)
	if err != nil {
		return nil, err
	}
	newList, err := listsOf(gvk, s.object, scheme)
	if err != nil {
		return nil, err
	}
	c := &CustomCacheInformer{
		object: s.object, gvk: gvk, form: guard.NewForm(gvk, s.object), scheme: scheme, selection: s,
		store: newCheckedStore(store, gvk, s.object), live: live, newList: newList,
		entries: newEntries(), synced: make(chan struct{}), stopped: make(chan struct{}),
	}
	c.listeners = &listeners{informer: c}
	return c, nil
}

// Object implements [Informer].
func (c *CustomCacheInformer) Object() client.Object { return c.object }

// Start lists and watches until the context ends. It returns when nothing of it is running any more.
func (c *CustomCacheInformer) Start(ctx context.Context) error {
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

// WaitForCacheSync waits until all objects are known. It returns false when the context or the informer ends before.
func (c *CustomCacheInformer) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.synced:
		return true
	case <-c.stopped:
	case <-ctx.Done():
	}
	return isClosed(c.synced)
}

// GetInformer returns what tells of events, when all objects are known unless told not to wait. The object must be of
// the informer's kind and form.
func (c *CustomCacheInformer) GetInformer(
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

// GetInformerForKind is GetInformer for the informer's kind. It is an error for an informer in another form than that
// of a Go type.
func (c *CustomCacheInformer) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	obj, err := c.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	object, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no kind of objects", gvk)
	}
	return c.GetInformer(ctx, object, opts...)
}

// RemoveInformer stops the informer for good.
func (c *CustomCacheInformer) RemoveInformer(_ context.Context, obj client.Object) error {
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

// IndexField makes lists by a field possible. It has to be called before the start.
func (c *CustomCacheInformer) IndexField(
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

// is returns an error for objects and lists that the informer does not have.
func (c *CustomCacheInformer) is(obj runtime.Object) error {
	if !(route{form: c.form, scheme: c.scheme}).is(obj) {
		return fmt.Errorf("this informer has objects of %s as %T, and not what is in %T", c.gvk.GroupKind(), c.object, obj)
	}
	return nil
}

func (c *CustomCacheInformer) notSynced(ctx context.Context) error {
	return errors.Join(fmt.Errorf("informer of %s: %w", c.gvk.GroupKind(), errNotFilled), ctx.Err())
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
