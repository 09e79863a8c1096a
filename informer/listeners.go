// SPDX-License-Identifier: Apache-2.0

package informer

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

// listeners holds the event handlers of an informer. Each handler has its own goroutine, which delivers one event at a
// time.
type listeners struct {
	informer *CustomCache

	// mu makes changing the entries and queueing the event atomic, so that an added handler receives each object once.
	mu      sync.Mutex
	ctx     context.Context
	all     []*listener
	running sync.WaitGroup
}

var _ cache.Informer = (*listeners)(nil)

// AddEventHandler implements [cache.Informer]. The handler is resynced together with the informer.
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

// AddEventHandlerWithOptions implements [cache.Informer]. The resync period must be the resync period of the informer,
// or 0 for none.
func (l *listeners) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	period := l.informer.selection.resync
	if options.ResyncPeriod != nil && *options.ResyncPeriod != 0 && *options.ResyncPeriod != period {
		return nil, fmt.Errorf(
			"the resync period of a handler must be 0 or that of the informer, %s, got %s", period, *options.ResyncPeriod,
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

// RemoveEventHandler implements [cache.Informer]. A call of the handler may still be in progress when it returns.
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

// AddIndexers implements [cache.Informer]. It returns an error: only IndexField adds indexes.
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

// SeenUpTo returns the latest resource version that reads reflect, or "" if no such version exists.
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
	l.IsStopped() // locks mu: no handler starts after this
	l.running.Wait()
}

func (l *listeners) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all) > 0
}

// notify applies a change and queues its event for all handlers.
func (l *listeners) notify(change func(), event func(handler toolscache.ResourceEventHandler)) {
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

// introduceAgain is the delay before reading objects again after a failure.
const introduceAgain = time.Second

// introduce sends the existing objects to a new handler. It retries until it succeeds, because no later event would
// deliver them.
func (l *listeners) introduce(ctx context.Context, handler toolscache.ResourceEventHandler, keys []client.ObjectKey) {
	for {
		sent := map[client.ObjectKey]struct{}{}
		err := l.informer.each(ctx, keys, func(obj client.Object) {
			sent[client.ObjectKeyFromObject(obj)] = struct{}{}
			if l.isNow(obj) {
				handler.OnAdd(obj, true)
			}
		})
		if err == nil {
			return
		}
		keys = slices.DeleteFunc(keys, func(key client.ObjectKey) bool {
			_, done := sent[key]
			return done
		})
		select {
		case <-time.After(introduceAgain):
		case <-ctx.Done():
			return
		}
	}
}

// repeat sends objects to a handler again. The next resync sends those that cannot be read now.
func (l *listeners) repeat(ctx context.Context, handler toolscache.ResourceEventHandler, keys []client.ObjectKey) {
	_ = l.informer.each(ctx, keys, func(obj client.Object) {
		if l.isNow(obj) {
			handler.OnUpdate(obj, obj)
		}
	})
}

// isNow reports whether obj is the state that the informer knows. For any other state an event will follow, also for a
// newer one that was read from the API server. A handler must not receive such a state early: if the object is deleted
// while the connection is down, the handler would never receive the deletion.
func (l *listeners) isNow(obj client.Object) bool {
	known, ok := l.informer.entries.get(client.ObjectKeyFromObject(obj))
	return ok && known.is(obj)
}

// listener is one event handler and its queue of events.
type listener struct {
	handler  toolscache.ResourceEventHandler
	resynced bool

	mu    sync.Mutex
	queue []func(ctx context.Context)
	// wake holds a value if the queue may have items.
	wake   chan struct{}
	synced chan struct{}
	// removed is canceled when the handler is removed.
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

// HasSynced reports whether the handler has received all initial objects.
func (l *listener) HasSynced() bool { return isClosed(l.synced) }

// HasSyncedChecker returns a checker that is done when HasSynced returns true.
func (l *listener) HasSyncedChecker() toolscache.DoneChecker {
	return syncedChecker{name: fmt.Sprintf("handler %T", l.handler), done: l.synced}
}

type syncedChecker struct {
	name string
	done <-chan struct{}
}

func (c syncedChecker) Name() string { return c.name }

func (c syncedChecker) Done() <-chan struct{} { return c.done }
