// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	watchapi "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// listWatch returns the ListerWatcher that controller-runtime uses for a kind, with the configuration of the cluster.
func listWatch(
	cluster cluster.Cluster, s selection, options Options, namespace string,
) (toolscache.ListerWatcher, error) {
	var found toolscache.ListerWatcher
	namespaces := []string{}
	if namespace != "" {
		namespaces = append(namespaces, namespace)
	}
	cacheOptions := s.cacheOptions(cluster, options, namespaces)
	cacheOptions.NewInformer = func(
		lw toolscache.ListerWatcher, object runtime.Object, _ time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		found = lw
		return neverStarted{toolscache.NewSharedIndexInformer(lw, object, 0, indexers)}
	}
	unused, err := cache.New(cluster.GetConfig(), cacheOptions)
	if err != nil {
		return nil, err
	}
	_, err = unused.GetInformer(context.Background(), s.object, cache.BlockUntilSynced(false))
	return found, err
}

// neverStarted reports that it has synced, because the goroutine of a multi-namespace cache waits for it.
type neverStarted struct{ toolscache.SharedIndexInformer }

func (i neverStarted) HasSyncedChecker() toolscache.DoneChecker { return i }

func (neverStarted) Name() string { return "never started" }

func (neverStarted) Done() <-chan struct{} { return closed }

var closed = func() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}()

// lazyListWatch returns a ListerWatcher that calls find before its first list or watch, because find needs an API
// server that serves the kind. An error of find becomes an error of the list or watch: the reflector reports it and
// retries.
func lazyListWatch(find func() (toolscache.ListerWatcher, error)) toolscache.ListerWatcher {
	var (
		mu    sync.Mutex
		found toolscache.ListerWatcherWithContext
	)
	get := func() (toolscache.ListerWatcherWithContext, error) {
		mu.Lock()
		defer mu.Unlock()
		if found == nil {
			source, err := find()
			if err != nil {
				return nil, err
			}
			found = toolscache.ToListerWatcherWithContext(source)
		}
		return found, nil
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			source, err := get()
			if err != nil {
				return nil, err
			}
			return source.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watchapi.Interface, error) {
			source, err := get()
			if err != nil {
				return nil, err
			}
			return source.WatchWithContext(ctx, options)
		},
	}
}
