// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
)

// Informer provides the objects of one kind to a controller: the controller reads from it and receives its events. It
// is a controller-runtime cache for one kind; [New] makes an Informer from any such cache.
//
// [View] and [trueup.dev/operator.InformerController] start informers and wait until they are synced.
type Informer interface {
	cache.Cache
	// Object returns an empty object of the kind, in the form of the informer: a Go type, unstructured, or metadata
	// only. The caller must not change it.
	Object() client.Object
}

// New returns an informer of a kind that uses a cache. The informer takes over the cache. The object determines the
// kind and the form. If it is unstructured or metadata only, its apiVersion and kind must be set.
func New(objects cache.Cache, object client.Object) Informer {
	return informer{Cache: objects, object: object}
}

type informer struct {
	cache.Cache
	object client.Object
}

func (i informer) Object() client.Object { return i.object }

// isEmpty reports whether the cache is nil.
func (i informer) isEmpty() bool { return nilcheck.IsNil(i.Cache) }

// CacheOf returns the cache of the informer.
func (i informer) CacheOf(client.Object) cache.Cache { return i.Cache }
