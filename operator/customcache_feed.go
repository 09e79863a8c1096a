// SPDX-License-Identifier: Apache-2.0

package operator

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

// feed takes what a reflector of client-go finds in one namespace, or in all. It never returns an error to the
// reflector, which would drop the object.
type feed struct {
	informer  *CustomCacheInformer
	namespace string
	source    toolscache.ListerWatcher
	onError   toolscache.WatchErrorHandlerWithContext

	// ctx is that of the reflector, which passes none.
	ctx context.Context

	mu sync.Mutex
	// version is the latest that was seen.
	version string
	synced  bool
}

var (
	_ toolscache.TransformingStore      = (*feed)(nil)
	_ toolscache.ReflectorBookmarkStore = (*feed)(nil)
)

func (c *CustomCacheInformer) addFeed(namespace string, source toolscache.ListerWatcher) *feed {
	f := &feed{informer: c, namespace: namespace, source: source, onError: toolscache.DefaultWatchErrorHandler}
	c.feeds = append(c.feeds, f)
	return f
}

// reconnect is how long to wait after a failure, as client-go does.
var reconnect = wait.Backoff{Duration: 800 * time.Millisecond, Cap: 30 * time.Second, Steps: 38, Factor: 2, Jitter: 1}

// healthy is after how much time without a failure the wait is short again.
const healthy = 2 * time.Minute

func (f *feed) run(ctx context.Context) {
	f.ctx = ctx
	reflector := toolscache.NewReflectorWithOptions(f.source, f.informer.object, f, toolscache.ReflectorOptions{
		Name: "informer of " + f.informer.gvk.GroupKind().String(), ResyncPeriod: f.informer.selection.resync,
	})
	// The reflector's own loop has no way to pass on errors.
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

// Transformer spares the memory of managed fields while a list is received.
func (f *feed) Transformer() toolscache.TransformFunc { return transform }

func (f *feed) Add(obj any) error {
	if object, ok := obj.(client.Object); ok {
		f.informer.seen(f.ctx, object, false)
		f.reached(object.GetResourceVersion())
	}
	return nil
}

func (f *feed) Update(obj any) error { return f.Add(obj) }

func (f *feed) Delete(obj any) error {
	if object, ok := obj.(client.Object); ok {
		f.informer.gone(f.ctx, client.ObjectKeyFromObject(object), object)
		f.reached(object.GetResourceVersion())
	}
	return nil
}

// Replace takes a whole list. What is known and not in it has gone while nobody was looking.
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
			f.informer.seen(f.ctx, object, initial)
		}
	}
	for key := range missing {
		f.informer.gone(f.ctx, key, nil)
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

// Resync tells handlers of all objects again.
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

func (c *CustomCacheInformer) feedSynced() {
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

// seenUpTo returns the latest version that reads reflect, "" when it is not one for all objects.
func (c *CustomCacheInformer) seenUpTo() string {
	if len(c.feeds) != 1 {
		return ""
	}
	version, _ := c.feeds[0].state()
	return version
}

// seen notes the state of an object and tells handlers. Whether the store takes it does not matter for either.
func (c *CustomCacheInformer) seen(ctx context.Context, obj client.Object, initial bool) {
	_, _ = transform(obj) // has no errors
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
	c.listeners.tell(func() {
		c.entries.put(key, now)
	}, func(handler toolscache.ResourceEventHandler) {
		if previous != nil {
			handler.OnUpdate(previous, obj)
		} else {
			handler.OnAdd(obj, initial)
		}
	})
}

// gone notes that an object is no more. Its last state is nil if it is not known.
func (c *CustomCacheInformer) gone(ctx context.Context, key client.ObjectKey, last client.Object) {
	before, known := c.entries.get(key)
	if !known {
		return
	}
	var told any = last
	if last == nil {
		told = toolscache.DeletedFinalStateUnknown{Key: cacheKey(key), Obj: c.remembered(ctx, key, before)}
	} else {
		_, _ = transform(last)
		last.GetObjectKind().SetGroupVersionKind(c.gvk)
	}
	c.listeners.tell(func() {
		c.entries.remove(key)
	}, func(handler toolscache.ResourceEventHandler) {
		handler.OnDelete(told)
	})
	c.store.delete(ctx, key)
}

func cacheKey(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// remembered returns a former state of an object from the store, or just what is known of it.
func (c *CustomCacheInformer) remembered(ctx context.Context, key client.ObjectKey, known entry) client.Object {
	if obj, ok := c.store.get(ctx, c.object, map[client.ObjectKey]entry{key: known})[key]; ok {
		return obj
	}
	obj := blankLike(c.object)
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	obj.SetUID(known.uid)
	obj.SetResourceVersion(known.version)
	obj.SetGeneration(known.generation)
	return obj
}
