// SPDX-License-Identifier: Apache-2.0

package operator

import "trueup.dev/informer"

// Second names, most of them of Grafana App SDK. `go fix` replaces them.

// Informer is an [informer.Informer].
//
// Deprecated: use [informer.Informer].
//
//go:fix inline
type Informer = informer.Informer

// InformerOptions are [informer.Options].
//
// Deprecated: use [informer.Options].
//
//go:fix inline
type InformerOptions = informer.Options

// CustomCacheInformer is an [informer.CustomCache].
//
// Deprecated: use [informer.CustomCache].
//
//go:fix inline
type CustomCacheInformer = informer.CustomCache

// Watcher is a [ResourceWatcher].
//
// Deprecated: use [ResourceWatcher].
//
//go:fix inline
type Watcher = ResourceWatcher

// ResourceActionFromReconcile is [ResourceActionFromReconcileAction].
//
// Deprecated: use [ResourceActionFromReconcileAction].
//
//go:fix inline
func ResourceActionFromReconcile(action ReconcileAction) ResourceAction {
	return ResourceActionFromReconcileAction(action)
}
