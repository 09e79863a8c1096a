// SPDX-License-Identifier: Apache-2.0

package ctrlfields

import (
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Informer is an informer of a cache. Several informers of a cache may be for one kind: for typed and unstructured
// objects, for metadata, and for each namespace.
type Informer struct {
	Kind schema.GroupVersionKind
	toolscache.SharedIndexInformer
}

// StartedInformers returns the informers that a cache of controller-runtime has started. The order is undefined. It
// returns nil for other caches.
func StartedInformers(of cache.Cache) []Informer { return appendInformers(nil, reflect.ValueOf(of)) }

func appendInformers(found []Informer, of reflect.Value) []Informer {
	of, ok := partOf(of)
	if !ok {
		return found
	}
	for _, name := range []string{"caches", "namespaceToCache"} {
		if parts := of.FieldByName(name); parts.Kind() == reflect.Map {
			for iter := parts.MapRange(); iter.Next(); {
				found = appendInformers(found, iter.Value())
			}
		}
	}
	for _, name := range []string{"defaultCache", "clusterCache"} {
		if part := of.FieldByName(name); part.IsValid() {
			found = appendInformers(found, part)
		}
	}
	if all := of.FieldByName("Informers"); all.Kind() == reflect.Pointer && all.Elem().Kind() == reflect.Struct {
		found = appendStarted(found, all.Elem())
	}
	return found
}

// partOf returns the struct of a cache, or of a part of it, which is behind interfaces and pointers.
func partOf(of reflect.Value) (reflect.Value, bool) {
	for of.Kind() == reflect.Interface || of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of, of.Kind() == reflect.Struct
}

// appendStarted appends the informers of a cache for one selection of namespaces.
func appendStarted(found []Informer, of reflect.Value) []Informer {
	mu, ok := field[sync.RWMutex](of, "mu")
	started, alsoOK := field[bool](of, "started")
	byForm := of.FieldByName("tracker") // its type is not exported
	if !ok || !alsoOK || byForm.Kind() != reflect.Struct {
		return found
	}
	mu.RLock()
	defer mu.RUnlock()
	if !*started {
		return found
	}
	for i := range byForm.NumField() {
		byKind := byForm.Field(i)
		if byKind.Kind() != reflect.Map || byKind.Type().Key() != reflect.TypeFor[schema.GroupVersionKind]() {
			continue
		}
		for iter := byKind.MapRange(); iter.Next(); {
			entry, ok := partOf(iter.Value())
			if !ok || !entry.CanAddr() {
				continue
			}
			informer, ok := field[toolscache.SharedIndexInformer](entry, "Informer")
			if ok && *informer != nil {
				kind := iter.Key()
				found = append(found, Informer{schema.GroupVersionKind{
					Group: kind.Field(0).String(), Version: kind.Field(1).String(), Kind: kind.Field(2).String(),
				}, *informer})
			}
		}
	}
	return found
}

// Namespaces returns the namespaces of the objects of a kind that a cache of controller-runtime has, sorted. All
// namespaces are "", also for other caches.
func Namespaces(of cache.Cache, kind schema.GroupVersionKind) []string {
	return namespacesOf(reflect.ValueOf(of), kind)
}

func namespacesOf(of reflect.Value, kind schema.GroupVersionKind) []string {
	of, ok := partOf(of)
	if !ok {
		return []string{""}
	}
	if byKind := of.FieldByName("caches"); byKind.IsValid() && byKind.Type() == reflect.TypeFor[kindCaches]() {
		if part := byKind.MapIndex(reflect.ValueOf(kind)); part.IsValid() {
			return namespacesOf(part, kind)
		}
	}
	if rest := of.FieldByName("defaultCache"); rest.IsValid() {
		return namespacesOf(rest, kind)
	}
	namespaces := []string{}
	if all := of.FieldByName("namespaceToCache"); all.Kind() == reflect.Map {
		for _, key := range all.MapKeys() {
			namespaces = append(namespaces, key.String())
		}
	}
	if len(namespaces) == 0 {
		return []string{""}
	}
	slices.Sort(namespaces)
	return namespaces
}

type kindCaches = map[schema.GroupVersionKind]cache.Cache
