// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// unfilled returns the kinds whose informers a cache of controller-runtime has started and not filled, sorted. Caches
// do not list their informers, so unfilled reads unexported fields. If these have changed, it returns nil.
func unfilled(informers cache.Cache) []schema.GroupVersionKind {
	found := appendUnfilled(nil, reflect.ValueOf(informers))
	slices.SortFunc(found, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	})
	return slices.Compact(found)
}

func appendUnfilled(found []schema.GroupVersionKind, informers reflect.Value) []schema.GroupVersionKind {
	for informers.Kind() == reflect.Interface || informers.Kind() == reflect.Pointer {
		informers = informers.Elem()
	}
	if informers.Kind() != reflect.Struct {
		return found
	}
	for _, name := range []string{"caches", "namespaceToCache"} {
		if parts := informers.FieldByName(name); parts.Kind() == reflect.Map {
			for iter := parts.MapRange(); iter.Next(); {
				found = appendUnfilled(found, iter.Value())
			}
		}
	}
	for _, name := range []string{"defaultCache", "clusterCache"} {
		if part := informers.FieldByName(name); part.IsValid() {
			found = appendUnfilled(found, part)
		}
	}
	if all := informers.FieldByName("Informers"); all.Kind() == reflect.Pointer && !all.IsNil() {
		found = appendStarted(found, all.Elem())
	}
	return found
}

// appendStarted reads the informers of a cache for one selection of namespaces.
func appendStarted(found []schema.GroupVersionKind, informers reflect.Value) []schema.GroupVersionKind {
	if informers.Kind() != reflect.Struct {
		return found
	}
	mu, isStarted := informers.FieldByName("mu"), informers.FieldByName("started")
	byForm := informers.FieldByName("tracker")
	if !mu.IsValid() || mu.Type() != reflect.TypeFor[sync.RWMutex]() || isStarted.Kind() != reflect.Bool ||
		byForm.Kind() != reflect.Struct {
		return found
	}
	lock := (*sync.RWMutex)(mu.Addr().UnsafePointer())
	lock.RLock()
	defer lock.RUnlock()
	if !isStarted.Bool() {
		return found
	}
	for i := range byForm.NumField() {
		byKind := byForm.Field(i)
		if byKind.Kind() != reflect.Map || byKind.Type().Key() != reflect.TypeFor[schema.GroupVersionKind]() {
			continue
		}
		for iter := byKind.MapRange(); iter.Next(); {
			if entry := iter.Value(); entry.Kind() == reflect.Pointer && !hasSynced(entry.Elem()) {
				kind := iter.Key()
				found = append(found, schema.GroupVersionKind{
					Group: kind.Field(0).String(), Version: kind.Field(1).String(), Kind: kind.Field(2).String(),
				})
			}
		}
	}
	return found
}

// hasSynced reports whether the informer in an addressable struct is filled.
func hasSynced(entry reflect.Value) bool {
	if entry.Kind() != reflect.Struct {
		return true
	}
	field := entry.FieldByName("Informer")
	if !field.IsValid() || field.Type() != reflect.TypeFor[toolscache.SharedIndexInformer]() {
		return true
	}
	informer := *(*toolscache.SharedIndexInformer)(field.Addr().UnsafePointer())
	return informer == nil || informer.HasSynced()
}
