// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
)

// informers is the cache of the manager. It has no objects: reads go to the overlay and to the cluster. Its informers
// deliver the objects that the planner lists, and the writes of a plan.
type informers struct {
	client.Reader

	cluster client.Client
	indexes *indexes

	mu  sync.Mutex
	all []*informer
}

var _ cache.Cache = (*informers)(nil)

// IndexField adds a field index.
func (c *informers) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	gvk, err := c.cluster.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	return c.indexes.add(gvk, field, extract)
}

// GetInformer returns the informer of a kind, in the form of the object: typed, unstructured or metadata.
func (c *informers) GetInformer(
	_ context.Context, obj client.Object, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	gvk, err := c.cluster.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	return c.informer(gvk, formOf(obj)), nil
}

// GetInformerForKind returns the informer of typed objects of a kind.
func (c *informers) GetInformerForKind(
	_ context.Context, gvk schema.GroupVersionKind, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	return c.informer(gvk, typed), nil
}

func (c *informers) informer(kind schema.GroupVersionKind, form form) *informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.all {
		if i.kind == kind && i.form == form {
			return i
		}
	}
	i := &informer{kind: kind, form: form, scheme: c.cluster.Scheme()}
	c.all = append(c.all, i)
	return i
}

// RemoveInformer does nothing.
func (c *informers) RemoveInformer(context.Context, client.Object) error { return nil }

// WaitForCacheSync returns true.
func (c *informers) WaitForCacheSync(context.Context) bool { return true }

// Start waits until the context ends.
func (c *informers) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// kinds returns the kinds that are watched, by name.
func (c *informers) kinds() []schema.GroupVersionKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kinds []schema.GroupVersionKind
	for _, i := range c.all {
		if !slices.Contains(kinds, i.kind) {
			kinds = append(kinds, i.kind)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	})
	return kinds
}

// deliver calls the handlers of a kind.
func (c *informers) deliver(e memapi.Event) error {
	c.mu.Lock()
	all := slices.Clone(c.all)
	c.mu.Unlock()
	for _, i := range all {
		if i.kind == e.Kind {
			if err := i.deliver(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// form is how objects are watched.
type form int

const (
	typed form = iota
	generic
	onlyMetadata
)

func formOf(obj client.Object) form {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata:
		return onlyMetadata
	case runtime.Unstructured:
		return generic
	}
	return typed
}

// informer calls the handlers of a kind.
type informer struct {
	kind   schema.GroupVersionKind
	form   form
	scheme *runtime.Scheme

	mu       sync.Mutex
	handlers []*registration
}

var _ cache.Informer = (*informer)(nil)

func (i *informer) deliver(e memapi.Event) error {
	i.mu.Lock()
	handlers := slices.Clone(i.handlers)
	i.mu.Unlock()
	for _, r := range handlers {
		after, err := i.formed(e.Object)
		if err != nil {
			return err
		}
		switch e.Type {
		case watch.Added:
			r.handler.OnAdd(after, false)
		case watch.Deleted:
			r.handler.OnDelete(after)
		default:
			before, err := i.formed(e.Old)
			if err != nil {
				return err
			}
			r.handler.OnUpdate(before, after)
		}
	}
	return nil
}

// formed returns a copy of an object in the form of the informer.
func (i *informer) formed(obj client.Object) (client.Object, error) {
	if formOf(obj) == i.form {
		return obj.DeepCopyObject().(client.Object), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(i.kind)
	switch i.form {
	case generic:
		return u, nil
	case onlyMetadata:
		metadata := &metav1.PartialObjectMetadata{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, metadata)
		return metadata, err
	}
	return typedObject(i.scheme, u)
}

// typedObject converts an object to the Go type of its kind.
func typedObject(scheme *runtime.Scheme, u *unstructured.Unstructured) (client.Object, error) {
	made, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, made); err != nil {
		return nil, err
	}
	return made.(client.Object), nil
}

// AddEventHandler adds a handler.
func (i *informer) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := &registration{handler: handler}
	i.handlers = append(i.handlers, r)
	return r, nil
}

// AddEventHandlerWithResyncPeriod is AddEventHandler.
func (i *informer) AddEventHandlerWithResyncPeriod(
	handler toolscache.ResourceEventHandler, _ time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// AddEventHandlerWithOptions is AddEventHandler.
func (i *informer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// RemoveEventHandler removes a handler.
func (i *informer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = slices.DeleteFunc(i.handlers, func(r *registration) bool { return r == handle })
	return nil
}

// AddIndexers returns an error: nothing is stored.
func (i *informer) AddIndexers(toolscache.Indexers) error {
	return errors.New("informers of a plan have no indexers: use the field indexer of the manager")
}

// HasSynced returns true.
func (i *informer) HasSynced() bool { return true }

// HasSyncedChecker returns a checker that is done.
func (i *informer) HasSyncedChecker() toolscache.DoneChecker { return &registration{} }

// IsStopped returns false.
func (i *informer) IsStopped() bool { return false }

// registration is a handler of an informer.
type registration struct {
	handler toolscache.ResourceEventHandler
}

var synced = func() chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// HasSynced returns true.
func (r *registration) HasSynced() bool { return true }

// HasSyncedChecker returns a checker that is done.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker { return r }

// Name returns a name for logs.
func (r *registration) Name() string { return "plan" }

// Done returns a closed channel.
func (r *registration) Done() <-chan struct{} { return synced }
