// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// missingTimeout is how long an object may be missing in a cache before the API server is asked whether it still
// exists. It is also how long the gate waits for an object in a cache that does not contain all objects.
const missingTimeout = time.Second

// observed reports whether every cache that reconcilers read the object from has observed the write. waited is how long
// the request has been deferred.
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
		// The object was deleted, or the cache has not observed its creation yet.
		return seen == "" || !older(seen, w.version)
	case apierrs.IsNotFound(err):
		return c.willNotAppear(ctx, f, w, waited)
	case err != nil:
		// The object is not read from a cache, or the cache does not contain it.
		return true
	case w.uid != "" && obj.GetUID() != w.uid:
		// This is another object with the same name: was it created before or after?
		return !older(obj.GetResourceVersion(), w.version)
	case w.effect == stored:
		return !older(obj.GetResourceVersion(), w.version)
	case w.effect == deleted:
		return obj.GetDeletionTimestamp() != nil
	default:
		return false
	}
}

// willNotAppear reports whether an object that is missing in the cache will not appear: it no longer exists, or the
// cache does not contain all objects.
func (c *Cluster) willNotAppear(ctx context.Context, f Form, w write, waited time.Duration) bool {
	if waited < missingTimeout {
		return false
	}
	c.mu.RLock()
	selective := c.selective[f]
	c.mu.RUnlock()
	return selective || c.noLongerExists(ctx, f, w)
}

func (c *Cluster) noLongerExists(ctx context.Context, f Form, w write) bool {
	obj, ok := c.blank(f)
	if !ok {
		return true
	}
	err := c.live.Get(ctx, w.key, obj)
	return apierrs.IsNotFound(err) || err == nil && w.uid != "" && obj.GetUID() != w.uid
}

// overdue handles a write that a cache did not observe in time. It reports whether the API server has the object and
// the cache does not: the cache is limited to some labels, fields or namespaces. From then on the wait for objects
// missing in it is shorter.
func (c *Cluster) overdue(w write) (selects bool) {
	if w.effect != stored {
		return false
	}
	// Do not use the context of the request: it may be done.
	ctx := context.Background()
	for _, f := range c.formsOf(w.kind) {
		obj, ok := c.blank(f)
		if !ok || !apierrs.IsNotFound(c.client.Get(ctx, w.key, obj)) || c.noLongerExists(ctx, f, w) {
			continue
		}
		c.mu.Lock()
		c.selective[f] = true
		c.mu.Unlock()
		selects = true
	}
	return selects
}

// Select records that the cache of objects like this one lacks some. On a nil Cluster it does nothing.
func (c *Cluster) Select(obj client.Object) {
	if c == nil {
		return
	}
	if f, err := c.formOf(obj); err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.selective[f] = true
	}
}

// Selects reports whether the cache of objects like this one is known to lack some. On a nil Cluster it returns false.
func (c *Cluster) Selects(obj client.Object) bool {
	if c == nil {
		return false
	}
	f, err := c.formOf(obj)
	if err != nil {
		return false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.selective[f]
}

// older reports whether the resource version a is certain to be before b. Versions of a few aggregated APIs cannot be
// compared.
func older(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
