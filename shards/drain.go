// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// retryAfter is when a request is repeated that was not made because the Lease has expired, or because the cache was
// outdated.
const retryAfter = time.Second

// Admit decides about a request for an object, before anything else happens. ours reports whether this replica
// reconciles the object. Otherwise the request ends with the result and the error:
//
//   - If the Lease of the replica has expired, the request is repeated after a second. This is logged once.
//   - If the object has the drain label, Admit removes both labels, provided that the object has not changed.
//   - If the object is assigned to another shard or to none, nothing happens.
//
// obj is the object in the cache, or nil if the cache does not have it. It is not changed. The reconcilers of this
// module call Admit themselves.
func (s *Shard) Admit(
	ctx context.Context, c client.Client, obj client.Object,
) (ours bool, result reconcile.Result, err error) {
	log := logr.FromContextOrDiscard(ctx).V(1)
	switch {
	case s.Lapsed():
		return false, reconcile.Result{RequeueAfter: retryAfter}, nil
	case obj == nil:
		return true, result, nil
	case !s.has(obj):
		log.Info("the object is assigned to another shard", "shard", obj.GetLabels()[s.Label()])
		return false, result, nil
	case !s.drains(obj):
		return true, result, nil
	}
	switch err := s.release(ctx, c, obj); {
	case apierrs.IsNotFound(err):
	case apierrs.IsConflict(err):
		// The drain label may have been removed, and then the event may not pass the predicates of the user.
		return false, reconcile.Result{RequeueAfter: retryAfter}, nil
	case err != nil:
		return false, result, fmt.Errorf("release the object for another shard: %w", err)
	}
	log.Info("released the object for another shard")
	return false, result, nil
}

// release removes the labels of the shard from an object, unless it has changed.
func (s *Shard) release(ctx context.Context, c client.Client, obj client.Object) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": obj.GetResourceVersion(),
		"labels":          map[string]any{s.Label(): nil, DrainLabel(s.options.Ring): nil},
	}})
	if err != nil {
		return err
	}
	released := obj.DeepCopyObject().(client.Object)
	return c.Patch(ctx, released, client.RawPatch(types.MergePatchType, patch))
}

// Reconciler returns a reconciler for a controller that uses controller-runtime alone. It follows the protocol, and
// calls r for the objects of this shard. The requests are for objects of the kind. r is not called for an object that
// is not in the cache, because another shard may have it: use a finalizer to handle deletions.
//
// Use [Shard.Predicate] for the watch of the kind, if it has predicates.
func (s *Shard) Reconciler(c client.Client, kind client.Object, r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		obj := kind.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, req.NamespacedName, obj); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if ours, result, err := s.Admit(ctx, c, obj); !ours || err != nil {
			return result, err
		}
		return r.Reconcile(ctx, req)
	})
}

// Predicate returns a predicate that passes what all predicates pass, and in addition each object with the drain label.
func (s *Shard) Predicate(predicates ...predicate.Predicate) predicate.Predicate {
	return drained{predicate.And(predicates...), s}
}

// drained also passes objects with the drain label.
type drained struct {
	predicate.Predicate
	shard *Shard
}

// Create calls the predicate in any case: it may record what it sees.
func (p drained) Create(e event.CreateEvent) bool {
	passes := p.Predicate.Create(e)
	return passes || p.shard.drains(e.Object)
}

// Update calls the predicate in any case: it may record what it sees.
func (p drained) Update(e event.UpdateEvent) bool {
	passes := p.Predicate.Update(e)
	return passes || p.shard.drains(e.ObjectNew)
}
