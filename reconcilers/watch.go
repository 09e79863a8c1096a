// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watch watches objects of a kind in the cluster of the config. The watches of a builder are always in the cluster of
// the manager. Event filters of the builder do not apply to another cluster.
func (c Config) watch(mgr Manager, bldr *Builder, obj client.Object, handler handler.EventHandler) {
	c.guard.Watch(obj)
	if c.cache == nil || c.cache == mgr.GetCache() {
		bldr.Watches(obj, handler)
		return
	}
	bldr.WatchesRawSource(source.Kind(c.cache, obj, handler))
}

// watchOwned watches the objects that the resource controls, in the cluster of the config.
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
