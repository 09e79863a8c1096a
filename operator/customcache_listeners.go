// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listeners are the event handlers of an informer. Each is called by a goroutine of its own, one event after the other.
type listeners struct {
	informer *CustomCacheInformer

	// mu makes a change of the entries and telling it one, so that a handler that is added is told of each object once.
	mu      sync.Mutex
	ctx     context.Context
	all     []*listener
	running sync.WaitGroup
}

var _ cache.Informer = (*listeners)(nil)

// AddEventHandler implements [cache.Informer]. The handler is resynced when the informer is.
func (l *listeners) AddEventHandler(handler toolscache.ResourceEventHandler) (
	toolscache.ResourceEventHandlerRegistration, error,
) {
	return l.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements [cache.Informer].
func (l *listeners) AddEventHandlerWithResyncPeriod(
	handler toolscache.ResourceEventHandler, period time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return l.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements [cache.Informer]. The resync period can be that of the informer, or 0 for none.
func (l *listeners) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	period := l.informer.selection.resync
	if options.ResyncPeriod != nil && *options.ResyncPeriod != 0 && *options.ResyncPeriod != period {
		return nil, fmt.Errorf(
			"a handler cannot have a resync period of %s: that of the informer is %s", *options.ResyncPeriod, period,
		)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isStopped() {
		return nil, errors.New("the informer has stopped")
	}
	added := &listener{
		handler: handler, resynced: options.ResyncPeriod == nil || *options.ResyncPeriod != 0,
		wake: make(chan struct{}, 1), synced: make(chan struct{}),
	}
	added.removed, added.remove = context.WithCancel(context.Background())
	if keys := l.informer.entries.in(""); len(keys) > 0 {
		added.push(func(ctx context.Context) { l.introduce(ctx, handler, keys) })
	}
	if isClosed(l.informer.synced) {
		added.push(added.markSynced)
	}
	l.all = append(l.all, added)
	if l.ctx != nil {
		l.running.Go(func() { added.run(l.ctx) })
	}
	return added, nil
}

// RemoveEventHandler implements [cache.Informer]. A call of the handler may still be under way when it returns.
func (l *listeners) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(listener *listener) bool {
		if toolscache.ResourceEventHandlerRegistration(listener) != handle {
			return false
		}
		listener.remove()
		return true
	})
	return nil
}

// AddIndexers implements [cache.Informer]. There are no other indexes than those of IndexField.
func (l *listeners) AddIndexers(toolscache.Indexers) error {
	return errors.New("this informer does not support indexers, use IndexField")
}

// HasSynced implements [cache.Informer].
func (l *listeners) HasSynced() bool { return isClosed(l.informer.synced) }

// HasSyncedChecker implements [cache.Informer].
func (l *listeners) HasSyncedChecker() toolscache.DoneChecker {
	return syncedChecker{name: "informer of " + l.informer.gvk.GroupKind().String(), done: l.informer.synced}
}

// IsStopped implements [cache.Informer].
func (l *listeners) IsStopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isStopped()
}

func (l *listeners) isStopped() bool { return l.ctx != nil && l.ctx.Err() != nil }

// SeenUpTo returns the latest resource version that reads reflect, "" when there is no such version.
func (l *listeners) SeenUpTo() string { return l.informer.seenUpTo() }

func (l *listeners) start(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx = ctx
	for _, listener := range l.all {
		l.running.Go(func() { listener.run(ctx) })
	}
}

func (l *listeners) wait() {
	l.IsStopped() // whoever is being added now has been added then, and nobody comes after
	l.running.Wait()
}

func (l *listeners) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all) > 0
}

// tell makes a change and tells all handlers of it.
func (l *listeners) tell(change func(), event func(handler toolscache.ResourceEventHandler)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	for _, listener := range l.all {
		listener.push(func(context.Context) { event(listener.handler) })
	}
}

func (l *listeners) markSynced() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.informer.synced)
	for _, listener := range l.all {
		listener.push(listener.markSynced)
	}
}

func (l *listeners) resync(keys []client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, listener := range l.all {
		if listener.resynced {
			listener.push(func(ctx context.Context) { l.repeat(ctx, listener.handler, keys) })
		}
	}
}

// introduceAgain is how long to wait when objects cannot be read.
const introduceAgain = time.Second

// introduce tells a handler of objects that were there before it. It does not give up: without them the handler would
// never know.
func (l *listeners) introduce(ctx context.Context, handler toolscache.ResourceEventHandler, keys []client.ObjectKey) {
	for {
		told := map[client.ObjectKey]struct{}{}
		err := l.informer.each(ctx, keys, func(obj client.Object) {
			told[client.ObjectKeyFromObject(obj)] = struct{}{}
			if l.isNow(obj) {
				handler.OnAdd(obj, true)
			}
		})
		if err == nil {
			return
		}
		keys = slices.DeleteFunc(keys, func(key client.ObjectKey) bool {
			_, done := told[key]
			return done
		})
		select {
		case <-time.After(introduceAgain):
		case <-ctx.Done():
			return
		}
	}
}

// repeat tells a handler of objects once more. What cannot be read now is told of next time.
func (l *listeners) repeat(ctx context.Context, handler toolscache.ResourceEventHandler, keys []client.ObjectKey) {
	_ = l.informer.each(ctx, keys, func(obj client.Object) {
		if l.isNow(obj) {
			handler.OnUpdate(obj, obj)
		}
	})
}

// isNow is true for the state that the informer knows of. Of any other an event is still to come: of a newer one, too,
// which was read from the API server. To tell of that before would be to tell of an object whose end might never be
// told, if it ends while there is no connection.
func (l *listeners) isNow(obj client.Object) bool {
	known, ok := l.informer.entries.get(client.ObjectKeyFromObject(obj))
	return ok && known.is(obj)
}

// listener is one event handler, and what it is still to be told.
type listener struct {
	handler  toolscache.ResourceEventHandler
	resynced bool

	mu    sync.Mutex
	queue []func(ctx context.Context)
	// wake holds a value when there is something in the queue.
	wake   chan struct{}
	synced chan struct{}
	// removed ends when the handler is removed.
	removed context.Context
	remove  context.CancelFunc
}

var _ toolscache.ResourceEventHandlerRegistration = (*listener)(nil)

func (l *listener) push(do func(ctx context.Context)) {
	l.mu.Lock()
	l.queue = append(l.queue, do)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *listener) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.removed, cancel)()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		l.mu.Lock()
		queue := l.queue
		l.queue = nil
		l.mu.Unlock()
		for _, do := range queue {
			if ctx.Err() != nil {
				return
			}
			do(ctx)
		}
	}
}

func (l *listener) markSynced(context.Context) { close(l.synced) }

// HasSynced is true when the handler has been told of all objects.
func (l *listener) HasSynced() bool { return isClosed(l.synced) }

// HasSyncedChecker is HasSynced to wait for.
func (l *listener) HasSyncedChecker() toolscache.DoneChecker {
	return syncedChecker{name: fmt.Sprintf("handler %T", l.handler), done: l.synced}
}

type syncedChecker struct {
	name string
	done <-chan struct{}
}

func (c syncedChecker) Name() string { return c.name }

func (c syncedChecker) Done() <-chan struct{} { return c.done }
