// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"trueup.dev/internal/engine/lifecycle"
)

// errOtherCluster is the reason of a wait for a cache that is not the cache of the manager.
var errOtherCluster = errors.New("it belongs to another cluster, which was added with mgr.Add(cluster). Add it with " +
	"mgr.Add(manager.RunnableFunc(cluster.Start)), and only the controllers that watch the cluster wait for it")

// startWaits reports the caches that a manager waits for before it starts any controller: those with informers that
// were registered before the start, for example by an IndexField.
type startWaits struct {
	*controllerObserver // of the first controller

	reported map[schema.GroupVersionKind]*CacheWait
	unknown  bool
}

// watchStart reports what the manager of a controller waits for when it starts, once for a hub.
func (c *controllerObserver) watchStart() (err error) {
	c.hub.startWatched.Do(func() {
		w := &startWaits{controllerObserver: c, reported: map[schema.GroupVersionKind]*CacheWait{}}
		err = lifecycle.WatchStart(c.mgr, w.watch)
	})
	return err
}

func (w *startWaits) watch(ctx context.Context) {
	since := time.Now()
	ticker := time.NewTicker(cacheWaitInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			for _, wait := range w.reported {
				w.end(wait)
			}
			return
		case <-ticker.C:
			w.check(ctx, since)
		}
	}
}

// check reports the kinds that the manager waits for now, and ends the waits for others.
func (w *startWaits) check(ctx context.Context, since time.Time) {
	own := w.mgr.GetCache()
	kinds := unfilled(own)
	other := len(kinds) == 0
	if other {
		kinds = w.unfilledElsewhere()
	}
	for kind, wait := range w.reported {
		if !slices.Contains(kinds, kind) {
			delete(w.reported, kind)
			w.end(wait)
		}
	}
	if len(kinds) == 0 && !w.unknown && ctx.Err() == nil {
		w.unknown = true
		limited, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		cause := "the cache of the manager is not filled"
		if own.WaitForCacheSync(limited) {
			cause = "a cache is not filled, and " + errOtherCluster.Error()
		}
		w.mgr.GetLogger().Info("No controller can start yet: " + cause)
	}
	for _, kind := range kinds {
		err := errOtherCluster
		if !other {
			err = w.tryList(ctx, own, kind)
		}
		if ctx.Err() != nil {
			return
		}
		w.report(ctx, &CacheWait{Kind: kind, Since: since, Err: err})
	}
}

// unfilledElsewhere returns the kinds of other caches than the cache of the manager that the controllers watch.
func (w *startWaits) unfilledElsewhere() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{}
	w.hub.controllers.Range(func(_, found any) bool {
		if c := found.(observed).observer.Value(); c != nil {
			c.otherCaches.Range(func(_, informers any) bool {
				kinds = append(kinds, unfilled(informers.(cache.Cache))...)
				return true
			})
		}
		return true
	})
	return kinds
}

func (w *startWaits) report(ctx context.Context, wait *CacheWait) {
	if last := w.reported[wait.Kind]; last == nil || last.String() != wait.String() {
		w.mgr.GetLogger().Info("No controller can start yet: the manager "+wait.String(),
			"since", wait.Since.UTC().Format(time.RFC3339))
	}
	w.reported[wait.Kind] = wait
	w.observeAll(ctx, wait)
}

func (w *startWaits) end(wait *CacheWait) {
	ended := *wait
	ended.Ended = true
	w.observeAll(context.Background(), &ended)
}

// observeAll passes a wait to the listeners as the wait of each controller.
func (w *startWaits) observeAll(ctx context.Context, wait *CacheWait) {
	w.hub.controllers.Range(func(_, found any) bool {
		if c := found.(observed); c.cluster == "" {
			of := *wait
			of.Controller = c.name
			w.hub.Observe(ctx, &of)
		}
		return true
	})
}
