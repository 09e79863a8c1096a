// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

const (
	// namespaceGrace lets requests end that were admitted before the deletion. kube-controller-manager waits 5 s because
	// of several API servers, and then for the longest grace period of a pod. Here there is one API server, and pods end
	// immediately.
	namespaceGrace = 100 * time.Millisecond

	namespaceRetryMin = 100 * time.Millisecond
	namespaceRetryMax = 15 * time.Second
	namespaceWorkers  = 8
)

// namespaceController empties terminating namespaces with Kubernetes' own deleter, but without its long waits and with
// fewer requests: a test has a namespace of its own, and hundreds of tests share a control plane.
type namespaceController struct {
	deleter deletion.NamespacedResourcesDeleterInterface
	queue   workqueue.TypedRateLimitingInterface[string]
}

func newNamespaces(ctx context.Context, s setup) (runFunc, error) {
	metadataClient, err := metadata.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	kinds := newSharedDiscovery(s.client.Discovery(), metadataClient.Resource(apiServices))
	n := &namespaceController{
		deleter: deletion.NewNamespacedResourcesDeleter(
			ctx, s.client.CoreV1().Namespaces(), emptyKinds{metadataClient, s.stored, kinds, &sync.Map{}}, s.client.CoreV1(),
			kinds.get, corev1.FinalizerKubernetes,
		),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](namespaceRetryMin, namespaceRetryMax)),
	}
	enqueue := func(object any) {
		if namespace, ok := object.(*corev1.Namespace); ok && namespace.DeletionTimestamp != nil {
			kinds.namespaceDeleted()
			n.queue.AddAfter(namespace.Name, namespaceGrace)
		}
	}
	_, err = s.informers.Core().V1().Namespaces().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(before, after any) {
			// The deleter's own status updates must not trigger a retry before it is due.
			if before.(*corev1.Namespace).DeletionTimestamp == nil {
				enqueue(after)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("namespaces: %w", err)
	}
	return n.run, nil
}

func (n *namespaceController) run(ctx context.Context) {
	var group sync.WaitGroup
	for range namespaceWorkers {
		group.Go(func() {
			for n.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	n.queue.ShutDown()
	group.Wait()
}

func (n *namespaceController) next(ctx context.Context) bool {
	name, shutdown := n.queue.Get()
	if shutdown {
		return false
	}
	defer n.queue.Done(name)
	err := n.deleter.Delete(ctx, name)
	if err == nil {
		n.queue.Forget(name)
		return true
	}
	if _, remaining := errors.AsType[*deletion.ResourcesRemainingError](err); !remaining && ctx.Err() == nil {
		klog.ErrorS(err, "Cannot empty namespace yet", "namespace", name)
	}
	n.queue.AddRateLimited(name)
	return true
}
