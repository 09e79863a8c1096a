// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// reconciler calls sync for the objects that were enqueued, one at a time, and retries after errors.
type reconciler struct {
	sync   func(context.Context, cache.ObjectName) error
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	synced []cache.InformerSynced
}

func newReconciler(sync func(context.Context, cache.ObjectName) error) *reconciler {
	return &reconciler{
		sync: sync,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
}

// watch passes the informer's objects to handle, also the deleted ones. run waits for its cache.
func (r *reconciler) watch(informer cache.SharedIndexInformer, handle func(object any)) error {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    handle,
		UpdateFunc: func(_, object any) { handle(object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			handle(object)
		},
	})
	if err != nil {
		return err
	}
	r.synced = append(r.synced, registration.HasSynced)
	return nil
}

func (r *reconciler) enqueue(object any) {
	if key, err := cache.ObjectToName(object); err == nil {
		r.queue.Add(key)
	}
}

func (r *reconciler) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() {
		if !cache.WaitForCacheSync(ctx.Done(), r.synced...) {
			return
		}
		for r.next(ctx) {
		}
	})
	<-ctx.Done()
	r.queue.ShutDown()
	group.Wait()
}

func (r *reconciler) next(ctx context.Context) bool {
	key, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(key)
	err := r.sync(ctx, key)
	if err == nil || apierrors.IsNotFound(err) {
		r.queue.Forget(key)
		return true
	}
	if !apierrors.IsConflict(err) && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot reconcile yet", "object", key)
	}
	r.queue.AddRateLimited(key)
	return true
}
