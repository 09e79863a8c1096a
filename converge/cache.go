// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// processCache is the cache of a manager.
type processCache struct {
	client.Reader

	process *process
	started bool
}

var _ cache.Cache = (*processCache)(nil)

// IndexField registers a field index.
func (c *processCache) IndexField(
	_ context.Context, obj client.Object, field string, extract client.IndexerFunc,
) error {
	gvk, err := apiutil.GVKForObject(obj, c.process.run.plan.Scheme)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(c.process.indexes, func(x index) bool { return x.kind == gvk && x.field == field }) {
		return fmt.Errorf("indexer conflict: field:%s", field)
	}
	c.process.indexes = append(c.process.indexes, index{kind: gvk, field: field, extract: extract})
	return nil
}

// GetInformer returns the informer of a kind. It is a call, so that informers are always created in the same order.
func (c *processCache) GetInformer(
	ctx context.Context, obj client.Object, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(obj, c.process.run.plan.Scheme)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, gvk, formOf(gvk, obj))
}

// formOf returns a function that converts a stored object to the form that is watched: typed, unstructured, or only its
// metadata.
func formOf(gvk schema.GroupVersionKind, obj client.Object) func(client.Object) client.Object {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata:
		return func(stored client.Object) client.Object { return metadataOf(gvk, stored) }
	case *unstructured.Unstructured:
		return func(stored client.Object) client.Object {
			if _, ok := stored.(*unstructured.Unstructured); ok {
				return stored
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
			if err != nil {
				return stored
			}
			u := &unstructured.Unstructured{Object: content}
			u.SetGroupVersionKind(gvk)
			return u
		}
	}
	return nil
}

// GetInformerForKind returns the informer of a kind.
func (c *processCache) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	return c.informer(ctx, gvk, nil)
}

func (c *processCache) informer(
	ctx context.Context, gvk schema.GroupVersionKind, form func(client.Object) client.Object,
) (cache.Informer, error) {
	if _, ok := c.process.run.plan.registry.For(gvk); !ok {
		return nil, fmt.Errorf("no matches for kind %q in version %q", gvk.Kind, gvk.GroupVersion())
	}
	if !c.started {
		return &processInformer{process: c.process, informer: c.process.informer(gvk), form: form}, nil
	}
	var i *informer
	err := c.process.submit(ctx, &call{
		site: site{act: "watch", kind: gvk.Kind}, begin: func() { i = c.process.informer(gvk) },
	})
	return &processInformer{process: c.process, informer: i, form: form}, err
}

// RemoveInformer does nothing.
func (c *processCache) RemoveInformer(context.Context, client.Object) error { return nil }

// WaitForCacheSync returns true: a cache is synced when it is created.
func (c *processCache) WaitForCacheSync(context.Context) bool { return true }

// Start waits until the context ends.
func (c *processCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// processInformer is the informer that handlers are added to.
type processInformer struct {
	process  *process
	informer *informer
	form     func(client.Object) client.Object
}

// SeenUpTo returns the version up to which the cache has all changes.
func (i *processInformer) SeenUpTo() string {
	return strconv.FormatInt(i.process.seenUpTo(i.informer), 10)
}

// seenUpTo returns the version up to which a cache has all changes. Bookmarks report that nothing has changed since its
// last event.
func (p *process) seenUpTo(i *informer) int64 {
	if len(i.coming) == 0 && i.held == nil {
		return p.run.world.server.Version()
	}
	return i.position
}

// AddEventHandler adds a handler, which receives the existing objects first.
func (i *processInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (
	toolscache.ResourceEventHandlerRegistration, error,
) {
	r := &registration{handler: handler, form: i.form, synced: make(chan struct{})}
	add := func() {
		i.informer.handlers = append(i.informer.handlers, r)
		i.informer.joining = append(i.informer.joining, r)
	}
	return r, i.process.submit(i.process.ctx, &call{
		site: site{act: "watch", kind: i.informer.kind.Kind + " with a handler"}, begin: add,
	})
}

// AddEventHandlerWithResyncPeriod is AddEventHandler: resyncs happen as faults.
func (i *processInformer) AddEventHandlerWithResyncPeriod(
	handler toolscache.ResourceEventHandler, _ time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// AddEventHandlerWithOptions is AddEventHandler.
func (i *processInformer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// RemoveEventHandler removes a handler.
func (i *processInformer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	i.informer.handlers = slices.DeleteFunc(i.informer.handlers, func(r *registration) bool { return r == handle })
	return nil
}

// AddIndexers returns an error: indexes are added with IndexField.
func (i *processInformer) AddIndexers(toolscache.Indexers) error {
	return fmt.Errorf("indexers of %s: not supported, use IndexField", i.informer.kind.Kind)
}

// HasSynced returns true.
func (i *processInformer) HasSynced() bool { return true }

// HasSyncedChecker returns a checker that is done.
func (i *processInformer) HasSyncedChecker() toolscache.DoneChecker {
	r := &registration{synced: make(chan struct{})}
	close(r.synced)
	return r
}

// IsStopped reports whether the process has ended.
func (i *processInformer) IsStopped() bool { return i.process.dead.Load() }

// registration is a handler of an informer.
type registration struct {
	handler toolscache.ResourceEventHandler
	// form is nil for handlers of typed objects.
	form   func(client.Object) client.Object
	synced chan struct{}
	once   sync.Once
}

// HasSynced reports whether the handler has received the objects that existed when it was added.
func (r *registration) HasSynced() bool {
	select {
	case <-r.synced:
		return true
	default:
		return false
	}
}

// HasSyncedChecker returns a checker for HasSynced.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker { return r }

// Name returns a name for logs.
func (r *registration) Name() string { return "converge" }

// Done is closed when HasSynced becomes true.
func (r *registration) Done() <-chan struct{} { return r.synced }

// tell calls the handler with a change.
func (r *registration) tell(i *informer, c change) {
	object := func(obj client.Object) client.Object {
		if r.form != nil {
			return r.form(obj)
		}
		return i.share(obj)
	}
	switch {
	case c.after == nil && c.unseen:
		key, _ := toolscache.MetaNamespaceKeyFunc(c.before)
		r.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key, Obj: object(c.before)})
	case c.after == nil && c.before != nil:
		r.handler.OnDelete(object(c.before))
	case c.after == nil:
	case c.before == nil:
		r.handler.OnAdd(object(c.after), c.initial)
	default:
		r.handler.OnUpdate(object(c.before), object(c.after))
	}
}

// syncNewHandlers calls new handlers with the existing objects, and reports whether there were any.
func (r *run) syncNewHandlers() bool {
	for i := range r.processes.informers() {
		p := i.process
		if len(i.joining) == 0 || p.delivering {
			continue
		}
		joining := i.joining
		i.joining = nil
		objects := slices.Clone(i.objects)
		p.inDelivery(func() {
			for _, handler := range joining {
				for _, obj := range objects {
					handler.tell(i, change{after: obj, initial: true})
				}
				handler.once.Do(func() { close(handler.synced) })
			}
		})
		return true
	}
	return false
}
