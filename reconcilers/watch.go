// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watch has events of a kind handled, in the cluster of the config: what a builder watches is always in the cluster of
// the manager. Event filters of the builder do not apply in another cluster.
func (c Config) watch(mgr Manager, bldr *Builder, obj client.Object, handler handler.EventHandler) {
	c.guard.Watch(obj)
	if c.cache == nil || c.cache == mgr.GetCache() {
		bldr.Watches(obj, handler)
		return
	}
	bldr.WatchesRawSource(source.Kind(c.cache, obj, handler))
}

// watchOwned has events of objects that the resource controls trigger it, in the cluster of the config.
func (c Config) watchOwned(ctx context.Context, mgr Manager, bldr *Builder, obj client.Object) {
	c.guard.Watch(obj)
	if c.cache == nil || c.cache == mgr.GetCache() {
		bldr.Owns(obj)
		return
	}
	owner := watchable(RetrieveOriginalResourceType(ctx), c.Scheme())
	bldr.WatchesRawSource(source.Kind(c.cache, obj,
		handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), owner, handler.OnlyControllerOwner())))
}
