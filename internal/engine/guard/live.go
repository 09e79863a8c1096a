// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readLive records an object that was read from the API server, or that does not exist there, if the caches have not
// observed that state yet.
func (c *Cluster) readLive(ctx context.Context, key client.ObjectKey, obj client.Object, err error) {
	journal := c.journal(ctx)
	if !journal.recordReads || err != nil && !apierrs.IsNotFound(err) {
		return
	}
	gvk, kindErr := c.client.GroupVersionKindFor(obj)
	if kindErr != nil {
		return
	}
	w := write{
		cluster: c,
		kind:    gvk.GroupKind(),
		key:     key,
		uid:     obj.GetUID(),
		version: obj.GetResourceVersion(),
		read:    true,
	}
	if err == nil {
		journal.addUnlessSeen(ctx, w)
		return
	}
	for _, f := range c.formsOf(w.kind) {
		if cached, ok := c.blank(f); ok && c.client.Get(ctx, key, cached) == nil {
			w.uid, w.version, w.effect = cached.GetUID(), cached.GetResourceVersion(), removed
			journal.addUnlessSeen(ctx, w)
		}
	}
}

// listedLive records the objects of a list that was read from the API server if the caches have not observed them yet.
func (c *Cluster) listedLive(ctx context.Context, list client.ObjectList) {
	if !c.journal(ctx).recordReads {
		return
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			c.readLive(ctx, client.ObjectKeyFromObject(obj), obj, nil)
		}
		return nil
	})
}

// addUnlessSeen records a read as if it were a write.
func (j *Journal) addUnlessSeen(ctx context.Context, w write) {
	if !w.observed(ctx, 0) {
		j.add(w)
	}
}
