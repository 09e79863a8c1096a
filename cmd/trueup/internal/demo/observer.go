// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
)

// observer follows a cluster with separate watches.
type observer struct {
	cache.Cache
	changed chan struct{} // holds one token if there was a change since the last receive
}

// observe watches the objects of sites until the context is done.
func observe(ctx context.Context, cfg *rest.Config, scheme *runtime.Scheme, namespaces []string) (*observer, error) {
	objects, err := cache.New(cfg, cache.Options{Scheme: scheme, DefaultNamespaces: only(namespaces)})
	if err != nil {
		return nil, err
	}
	o := &observer{Cache: objects, changed: make(chan struct{}, 1)}
	for _, kind := range []client.Object{
		&websitev1.Website{}, &corev1.ConfigMap{}, &corev1.Service{}, &appsv1.Deployment{},
	} {
		informer, err := objects.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { o.notify() },
			UpdateFunc: func(any, any) { o.notify() },
			DeleteFunc: func(any) { o.notify() },
		})
		if err != nil {
			return nil, err
		}
	}
	// Start ends with the context. An earlier error shows as a cache that does not sync.
	go func() { _ = objects.Start(ctx) }()
	if !objects.WaitForCacheSync(ctx) {
		return nil, errors.New("the caches did not sync")
	}
	return o, nil
}

func (o *observer) notify() {
	select {
	case o.changed <- struct{}{}:
	default: // the previous change has not been received yet
	}
}

// glance is the interval at which await checks records, which cannot be watched.
const glance = 200 * time.Millisecond

// await calls look after each change until nothing is pending. After the timeout it returns an error with what is
// pending.
func (o *observer) await(
	ctx context.Context, timeout time.Duration, look func(context.Context) (pending string, err error),
) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for {
		pending, err := look(ctx)
		if err != nil || pending == "" {
			return err
		}
		select {
		case <-o.changed:
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return fmt.Errorf("after %s: %s", timeout, pending)
		}
	}
}
