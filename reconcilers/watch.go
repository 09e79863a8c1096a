// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watch has events of a kind handled, in the cluster of the config: what a builder watches is always in the cluster of the manager. Event filters of
// the builder do not apply in another cluster.
func (c Config) watch(mgr Manager, bldr *Builder, obj client.Object, handler handler.EventHandler) {
	if c.cache == nil || c.cache == mgr.GetCache() {
		bldr.Watches(obj, handler)
		return
	}
	bldr.WatchesRawSource(source.Kind(c.cache, obj, handler))
}
