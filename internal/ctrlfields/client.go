// SPDX-License-Identifier: Apache-2.0

package ctrlfields

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions returns the options by which a client of controller-runtime decides whether a read uses its cache: the
// kinds that it never reads from the cache, and whether it reads unstructured objects from it. They have their defaults
// for other clients.
func CacheOptions(c client.Client) (uncached map[schema.GroupVersionKind]struct{}, unstructured bool) {
	of, ok := structOf(c)
	if !ok {
		return nil, false
	}
	if kinds, ok := field[map[schema.GroupVersionKind]struct{}](of, "uncachedGVKs"); ok {
		uncached = *kinds
	}
	if too, ok := field[bool](of, "cacheUnstructured"); ok {
		unstructured = *too
	}
	return uncached, unstructured
}

// CacheOf returns the cache that a client of controller-runtime reads from, or nil for other clients.
func CacheOf(c client.Client) client.Reader {
	of, ok := structOf(c)
	if !ok || of.Type().PkgPath() != reflect.TypeFor[client.ListOptions]().PkgPath() {
		return nil
	}
	if reads, ok := field[client.Reader](of, "cache"); ok {
		return *reads
	}
	return nil
}
