// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// patience is how long an object may be missing in a cache before the API server is asked whether it still exists, and how long one is waited for in a
// cache that is known not to have all objects.
const patience = time.Second

// observed is true when every cache that reconcilers read the object from has seen the write. waited is how long the request has been put off for.
func (w write) observed(ctx context.Context, waited time.Duration) bool {
	for _, f := range w.cluster.formsOf(w.kind) {
		if !w.cluster.sees(ctx, f, w, waited) {
			return false
		}
	}
	return true
}

func (c *Cluster) sees(ctx context.Context, f Form, w write, waited time.Duration) bool {
	obj, ok := c.blank(f)
	if !ok {
		return true
	}
	seen := c.seenUpTo(ctx, f, obj)
	if seen != "" && w.effect == stored && !older(seen, w.version) {
		return true
	}
	err := c.client.Get(ctx, w.key, obj)
	switch {
	case apierrs.IsNotFound(err) && w.effect != stored:
		// Either it is gone, or the cache has not even seen it come.
		return seen == "" || !older(seen, w.version)
	case apierrs.IsNotFound(err):
		return c.neverComes(ctx, f, w, waited)
	case err != nil:
		// Not from a cache, or not from one that has this object.
		return true
	case w.uid != "" && obj.GetUID() != w.uid:
		// Another object of the same name: is it one before, or one after?
		return !older(obj.GetResourceVersion(), w.version)
	case w.effect == stored:
		return !older(obj.GetResourceVersion(), w.version)
	case w.effect == deleted:
		return obj.GetDeletionTimestamp() != nil
	default:
		return false
	}
}

// neverComes is true when an object that is not in the cache will not come: it is gone again, or the cache is known to leave objects out.
func (c *Cluster) neverComes(ctx context.Context, f Form, w write, waited time.Duration) bool {
	if waited < patience {
		return false
	}
	c.mu.RLock()
	selective := c.selective[f]
	c.mu.RUnlock()
	return selective || c.isGone(ctx, f, w)
}

func (c *Cluster) isGone(ctx context.Context, f Form, w write) bool {
	obj, ok := c.blank(f)
	if !ok {
		return true
	}
	err := c.live.Get(ctx, w.key, obj)
	return apierrs.IsNotFound(err) || err == nil && w.uid != "" && obj.GetUID() != w.uid
}

// overdue learns from a write that a cache has not seen in time. If the API server has the object and the cache does not, the cache most likely is limited
// to some labels, fields or namespaces. From then on objects missing in it are not waited for as long.
func (c *Cluster) overdue(w write) {
	if w.effect != stored {
		return
	}
	// Not the context of the request: it may be over.
	ctx := context.Background()
	for _, f := range c.formsOf(w.kind) {
		obj, ok := c.blank(f)
		if !ok || !apierrs.IsNotFound(c.client.Get(ctx, w.key, obj)) {
			continue
		}
		c.mu.Lock()
		c.selective[f] = true
		c.mu.Unlock()
	}
}

// older is true when the resource version a is certain to be before b. Those of a few aggregated APIs cannot be compared.
func older(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
