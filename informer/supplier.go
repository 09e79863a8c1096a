// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/resource"
)

// Supplier makes the informer of a kind. The cluster provides the connection to the API; a manager is a cluster. The
// Go type of the kind must be in the cluster's scheme. A supplier must support all options or return an error.
type Supplier func(kind resource.Kind, cluster cluster.Cluster, options Options) (Informer, error)

// DefaultSupplier makes informers that keep objects in memory, in a cache of controller-runtime. Managed fields are
// stripped.
func DefaultSupplier(kind resource.Kind, cluster cluster.Cluster, options Options) (Informer, error) {
	s, err := options.selection(kind)
	if err != nil {
		return nil, err
	}
	if nilcheck.IsNil(cluster) {
		return nil, fmt.Errorf("informer of %s must have a cluster", kind)
	}
	objects, err := cache.New(cluster.GetConfig(), s.cacheOptions(cluster, options, options.Namespaces))
	if err != nil {
		return nil, fmt.Errorf("make the informer of %s: %w", kind, err)
	}
	return sharded(New(objects, s.object), options.ShardFilter), nil
}

// MetadataOnlySupplier is [DefaultSupplier] with [Options.MetadataOnly]. Use it for kinds with very many or very large
// objects, if handlers need only metadata, or read the few complete objects that they need from the API server.
func MetadataOnlySupplier(kind resource.Kind, cluster cluster.Cluster, options Options) (Informer, error) {
	options.MetadataOnly = true
	return DefaultSupplier(kind, cluster, options)
}

var (
	_ Supplier = DefaultSupplier
	_ Supplier = MetadataOnlySupplier
)
