// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// WatchStart makes a manager call watch when it starts its caches. The context of watch ends when the manager has
// filled all of them and starts its controllers, or when it stops. A manager waits without a limit and without a
// message for the informers that were registered before its start, in its own cache and in the caches of other
// clusters.
func WatchStart(mgr manager.Manager, watch func(ctx context.Context)) error {
	begun := &startWatched{afterCaches{reached: make(chan struct{})}}
	if err := mgr.Add(&startWatch{watch: watch, begun: begun.reached}); err != nil {
		return err
	}
	return mgr.Add(begun)
}

// IsStartWatch reports whether WatchStart added the runnable. It does none of the work of a program.
func IsStartWatch(runnable manager.Runnable) bool {
	switch runnable.(type) {
	case *startWatch, *startWatched:
		return true
	}
	return false
}

// startWatched is started when all caches are filled.
type startWatched struct{ afterCaches }

// startWatch is started with the caches, because it has a cache. The manager does not wait for it.
type startWatch struct {
	watch func(ctx context.Context)
	begun <-chan struct{}
}

// GetCache returns a cache that is filled.
func (w *startWatch) GetCache() cache.Cache { return noCache{} }

// Start calls watch.
func (w *startWatch) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.begun:
			cancel()
		case <-ctx.Done():
		}
	}()
	w.watch(ctx)
	return nil
}

type noCache struct{ cache.Cache }

func (noCache) WaitForCacheSync(context.Context) bool { return true }
