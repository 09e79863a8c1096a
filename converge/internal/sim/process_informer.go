// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/world"
)

// processInformer is an informer as client-go has it: handlers are added to it, and its store can be read.
type processInformer struct {
	process  *Process
	informer *informer
	form     form
	store    informerStore
}

var _ toolscache.SharedIndexInformer = (*processInformer)(nil)

// inForm returns the informer of objects in a form.
func (i *informer) inForm(p *Process, form form) *processInformer {
	if i.forms[form] == nil {
		i.forms[form] = &processInformer{process: p, informer: i, form: form}
		i.forms[form].store.informer = i.forms[form]
	}
	return i.forms[form]
}

// formed converts a stored object to the form that is watched.
func (i *processInformer) formed(stored client.Object) client.Object {
	switch i.form {
	case formMetadata:
		return metadataOf(i.informer.kind, stored)
	case formUnstructured:
		if _, ok := stored.(*unstructured.Unstructured); ok {
			return i.informer.share(stored)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
		if err != nil {
			return stored
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(i.informer.kind)
		return u
	}
	return i.informer.share(stored)
}

// GetStore and GetIndexer return the objects in the cache.
func (i *processInformer) GetStore() toolscache.Store     { return &i.store }
func (i *processInformer) GetIndexer() toolscache.Indexer { return &i.store }

// GetController returns the informer itself.
func (i *processInformer) GetController() toolscache.Controller { return i }

// Run waits until the channel is closed: the cache runs the informer.
func (i *processInformer) Run(stop <-chan struct{}) { <-stop }

// RunWithContext waits until the context ends.
func (i *processInformer) RunWithContext(ctx context.Context) { <-ctx.Done() }

// LastSyncResourceVersion returns the version up to which the cache has all changes.
func (i *processInformer) LastSyncResourceVersion() string { return i.SeenUpTo() }

// SetWatchErrorHandler does nothing: a watch that fails is one that delays events.
func (i *processInformer) SetWatchErrorHandler(toolscache.WatchErrorHandler) error { return nil }

// SetWatchErrorHandlerWithContext does nothing.
func (i *processInformer) SetWatchErrorHandlerWithContext(toolscache.WatchErrorHandlerWithContext) error {
	return nil
}

// SetTransform returns the error of an informer that has started.
func (i *processInformer) SetTransform(toolscache.TransformFunc) error {
	return errors.New("informer has already started")
}

// SeenUpTo returns the version up to which the cache has all changes.
func (i *processInformer) SeenUpTo() string {
	return strconv.FormatInt(i.process.seenUpTo(i.informer), 10)
}

// seenUpTo returns the version up to which a cache has all changes. Bookmarks report that nothing has changed since its
// last event.
func (p *Process) seenUpTo(i *informer) int64 {
	if len(i.coming) == 0 && i.held == nil {
		return p.world.Server.Version()
	}
	return i.position
}

// AddEventHandler adds a handler, which receives the existing objects first.
func (i *processInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (
	toolscache.ResourceEventHandlerRegistration, error,
) {
	r := &registration{handler: handler, informer: i, synced: make(chan struct{})}
	add := func() {
		i.informer.handlers = append(i.informer.handlers, r)
		i.informer.joining = append(i.informer.joining, r)
	}
	return r, i.process.submit(i.process.ctx, &call{
		Call: world.Call{Site: inject.Site{Act: "watch", Kind: i.informer.kind.Kind + " with a handler"}}, begin: add,
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

// AddIndexers adds indexes.
func (i *processInformer) AddIndexers(added toolscache.Indexers) error {
	return i.store.AddIndexers(added)
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
	handler  toolscache.ResourceEventHandler
	informer *processInformer
	synced   chan struct{}
	once     sync.Once
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
func (r *registration) tell(c change) {
	object := r.informer.formed
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
					handler.tell(change{after: obj, initial: true})
				}
				handler.once.Do(func() { close(handler.synced) })
			}
		})
		return true
	}
	return false
}

// informerStore is what an informer has in its cache, as client-go shows it. Its objects are shared with all who read
// them, and its reads are not injection points: as in client-go they cannot fail. Keys are sorted, so that runs are
// deterministic.
type informerStore struct {
	informer *processInformer
	indexers toolscache.Indexers
}

var _ toolscache.Indexer = (*informerStore)(nil)

var errFilledByWatch = errors.New("the cache of an informer is only changed by its watch")

// Add, Update, Delete and Replace return an error.
func (s *informerStore) Add(any) error               { return errFilledByWatch }
func (s *informerStore) Update(any) error            { return errFilledByWatch }
func (s *informerStore) Delete(any) error            { return errFilledByWatch }
func (s *informerStore) Replace([]any, string) error { return errFilledByWatch }

// Resync and Bookmark do nothing.
func (s *informerStore) Resync() error   { return nil }
func (s *informerStore) Bookmark(string) {}

// LastStoreSyncResourceVersion returns the version up to which the cache has all changes.
func (s *informerStore) LastStoreSyncResourceVersion() string { return s.informer.SeenUpTo() }

// List returns all objects, in an order that changes with [FaultListOrder].
func (s *informerStore) List() []any {
	return s.selected(func(any) bool { return true })
}

func (s *informerStore) selected(selects func(any) bool) []any {
	found := []any{}
	for _, stored := range s.informer.process.ordered(s.informer.informer) {
		if obj := s.informer.formed(stored); selects(obj) {
			found = append(found, obj)
		}
	}
	return found
}

// ListKeys returns the keys of all objects.
func (s *informerStore) ListKeys() []string { return keysOf(s.List()) }

func keysOf(objects []any) []string {
	keys := make([]string, len(objects))
	for i, obj := range objects {
		keys[i], _ = toolscache.MetaNamespaceKeyFunc(obj)
	}
	return keys
}

// Get returns the object with the key of another one.
func (s *informerStore) Get(obj any) (item any, exists bool, err error) {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, toolscache.KeyError{Obj: obj, Err: err}
	}
	return s.GetByKey(key)
}

// GetByKey returns the object with a key, which is a name or namespace/name.
func (s *informerStore) GetByKey(key string) (item any, exists bool, err error) {
	name, err := toolscache.ParseObjectName(key)
	if err != nil {
		return nil, false, err
	}
	stored := s.informer.informer.get(name.AsNamespacedName())
	if stored == nil {
		return nil, false, nil
	}
	return s.informer.formed(stored), true, nil
}

// AddIndexers adds indexes.
func (s *informerStore) AddIndexers(added toolscache.Indexers) error {
	for _, name := range slices.Sorted(maps.Keys(added)) {
		if _, exists := s.indexers[name]; exists {
			return fmt.Errorf("indexer conflict: [%s]", name)
		}
	}
	if s.indexers == nil {
		s.indexers = toolscache.Indexers{}
	}
	maps.Copy(s.indexers, added)
	return nil
}

// GetIndexers returns the indexes that were added.
func (s *informerStore) GetIndexers() toolscache.Indexers { return s.indexers }

// Index returns the objects that have a value of an index in common with another one.
func (s *informerStore) Index(name string, obj any) ([]any, error) {
	values, err := s.values(name)
	if err != nil {
		return nil, err
	}
	wanted := values(obj)
	return s.selected(func(obj any) bool {
		return slices.ContainsFunc(values(obj), func(value string) bool { return slices.Contains(wanted, value) })
	}), nil
}

// ByIndex returns the objects that have a value of an index.
func (s *informerStore) ByIndex(name, value string) ([]any, error) {
	values, err := s.values(name)
	if err != nil {
		return nil, err
	}
	return s.selected(func(obj any) bool { return slices.Contains(values(obj), value) }), nil
}

// IndexKeys returns the keys of the objects that have a value of an index.
func (s *informerStore) IndexKeys(name, value string) ([]string, error) {
	objects, err := s.ByIndex(name, value)
	return keysOf(objects), err
}

// ListIndexFuncValues returns all values of an index.
func (s *informerStore) ListIndexFuncValues(name string) []string {
	values, err := s.values(name)
	if err != nil {
		return nil
	}
	var all []string
	for _, obj := range s.List() {
		all = append(all, values(obj)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// values returns the function of an index. As in client-go, it panics if it returns an error.
func (s *informerStore) values(name string) (func(any) []string, error) {
	index, ok := s.indexers[name]
	if !ok {
		return nil, fmt.Errorf("Index with name %s does not exist", name)
	}
	return func(obj any) []string {
		values, err := index(obj)
		if err != nil {
			panic(fmt.Errorf("unable to calculate an index entry on index %q: %w", name, err))
		}
		return values
	}, nil
}
