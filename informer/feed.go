// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// feed receives the objects of a client-go reflector, for one namespace or for all. It never returns an error to the
// reflector, because the reflector would drop the object.
type feed struct {
	informer  *CustomCache
	namespace string
	source    toolscache.ListerWatcher
	onError   toolscache.WatchErrorHandlerWithContext

	// ctx is the context of the reflector, which does not pass it on.
	ctx context.Context

	mu sync.Mutex
	// version is the latest resource version received.
	version string
	synced  bool
}

var (
	_ toolscache.TransformingStore      = (*feed)(nil)
	_ toolscache.ReflectorBookmarkStore = (*feed)(nil)
)

func (c *CustomCache) addFeed(namespace string, source toolscache.ListerWatcher) *feed {
	f := &feed{informer: c, namespace: namespace, source: source, onError: toolscache.DefaultWatchErrorHandler}
	c.feeds = append(c.feeds, f)
	return f
}

// reconnect is the backoff after a failure, as in client-go.
var reconnect = wait.Backoff{Duration: 800 * time.Millisecond, Cap: 30 * time.Second, Steps: 38, Factor: 2, Jitter: 1}

// healthy is the time without a failure after which the backoff is reset.
const healthy = 2 * time.Minute

func (f *feed) run(ctx context.Context) {
	f.ctx = ctx
	reflector := toolscache.NewReflectorWithOptions(f.source, f.informer.object, f, toolscache.ReflectorOptions{
		Name: "informer of " + f.informer.gvk.GroupKind().String(), ResyncPeriod: f.informer.selection.resync,
	})
	// The reflector's own loop does not pass on errors.
	delay := reconnect.DelayFunc()
	for ctx.Err() == nil {
		begin := time.Now()
		if err := reflector.ListAndWatchWithContext(ctx); err != nil && ctx.Err() == nil {
			f.onError(ctx, reflector, err)
		}
		if time.Since(begin) > healthy {
			delay = reconnect.DelayFunc()
		}
		select {
		case <-time.After(delay()):
		case <-ctx.Done():
		}
	}
}

var transform = cache.TransformStripManagedFields()

// Transformer strips managed fields while the reflector receives a list, to save memory.
func (f *feed) Transformer() toolscache.TransformFunc { return transform }

func (f *feed) Add(obj any) error {
	if object, ok := obj.(client.Object); ok {
		f.informer.objectSeen(f.ctx, object, false)
		f.reached(object.GetResourceVersion())
	}
	return nil
}

func (f *feed) Update(obj any) error { return f.Add(obj) }

func (f *feed) Delete(obj any) error {
	if object, ok := obj.(client.Object); ok {
		f.informer.objectDeleted(f.ctx, client.ObjectKeyFromObject(object), object)
		f.reached(object.GetResourceVersion())
	}
	return nil
}

// Replace receives a complete list. Known objects that are not in the list were deleted without a watch event.
func (f *feed) Replace(list []any, version string) error {
	f.mu.Lock()
	initial := !f.synced
	f.mu.Unlock()
	missing := map[client.ObjectKey]struct{}{}
	for _, key := range f.informer.entries.in(f.namespace) {
		missing[key] = struct{}{}
	}
	for _, obj := range list {
		if object, ok := obj.(client.Object); ok {
			delete(missing, client.ObjectKeyFromObject(object))
			f.informer.objectSeen(f.ctx, object, initial)
		}
	}
	for key := range missing {
		f.informer.objectDeleted(f.ctx, key, nil)
	}
	f.reached(version)
	f.mu.Lock()
	f.synced = true
	f.mu.Unlock()
	f.informer.feedSynced()
	return nil
}

func (f *feed) Bookmark(version string) error {
	f.reached(version)
	return nil
}

// Resync sends all objects to the handlers again.
func (f *feed) Resync() error {
	f.informer.listeners.resync(f.informer.entries.in(f.namespace))
	return nil
}

func (f *feed) reached(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version = version
}

func (f *feed) state() (version string, synced bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version, f.synced
}

func (c *CustomCache) feedSynced() {
	c.mu.Lock()
	defer c.mu.Unlock()
	allSynced := !slices.ContainsFunc(c.feeds, func(f *feed) bool {
		_, synced := f.state()
		return !synced
	})
	if allSynced && !isClosed(c.synced) {
		c.listeners.markSynced()
	}
}

// seenUpTo returns the latest resource version that reads reflect, "" if it differs between namespaces.
func (c *CustomCache) seenUpTo() string {
	if len(c.feeds) != 1 {
		return ""
	}
	version, _ := c.feeds[0].state()
	return version
}

// objectSeen records the state of an object and notifies handlers, whether or not the store accepts the object.
func (c *CustomCache) objectSeen(ctx context.Context, obj client.Object, initial bool) {
	_, _ = transform(obj) // never returns an error
	obj.GetObjectKind().SetGroupVersionKind(c.gvk)
	key := client.ObjectKeyFromObject(obj)
	before, known := c.entries.get(key)
	if known && before.is(obj) {
		return
	}
	var previous client.Object
	if known && c.listeners.any() {
		previous = c.remembered(ctx, key, before)
	}
	now := entry{
		uid: obj.GetUID(), version: obj.GetResourceVersion(), generation: obj.GetGeneration(),
		hash: c.store.set(ctx, key, obj), indexed: c.entries.valuesOf(obj),
	}
	c.listeners.notify(func() {
		c.entries.put(key, now)
	}, func(handler toolscache.ResourceEventHandler) {
		if previous != nil {
			handler.OnUpdate(previous, obj)
		} else {
			handler.OnAdd(obj, initial)
		}
	})
}

// objectDeleted records that an object no longer exists. last is its last state, nil if unknown.
func (c *CustomCache) objectDeleted(ctx context.Context, key client.ObjectKey, last client.Object) {
	before, known := c.entries.get(key)
	if !known {
		return
	}
	var deleted any = last
	if last == nil {
		deleted = toolscache.DeletedFinalStateUnknown{Key: cacheKey(key), Obj: c.remembered(ctx, key, before)}
	} else {
		_, _ = transform(last)
		last.GetObjectKind().SetGroupVersionKind(c.gvk)
	}
	c.listeners.notify(func() {
		c.entries.remove(key)
	}, func(handler toolscache.ResourceEventHandler) {
		handler.OnDelete(deleted)
	})
	c.store.delete(ctx, key)
}

func cacheKey(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// remembered returns the previous state of an object from the store, or only the metadata of its entry.
func (c *CustomCache) remembered(ctx context.Context, key client.ObjectKey, known entry) client.Object {
	if obj, ok := c.store.get(ctx, c.object, map[client.ObjectKey]entry{key: known})[key]; ok {
		return obj
	}
	obj := c.empty()
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	obj.SetUID(known.uid)
	obj.SetResourceVersion(known.version)
	obj.SetGeneration(known.generation)
	return obj
}
