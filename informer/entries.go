// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// entry is the part of an object that is kept outside of the store.
type entry struct {
	uid        types.UID
	version    string
	generation int64
	// hash is the hash of the only valid value for the object in the store, 0 if no value is valid.
	hash uint64
	// indexed holds the values of the indexed fields.
	indexed map[string][]string
}

func (e entry) is(obj client.Object) bool {
	return e.uid == obj.GetUID() && e.version == obj.GetResourceVersion() && e.version != ""
}

// entries holds the entries of all objects of an informer.
type entries struct {
	mu sync.RWMutex
	// names is keyed by namespace and name.
	names map[string]map[string]entry
	// extract is keyed by field, and returns the values of the field.
	extract map[string]client.IndexerFunc
	// keys holds the objects that have a value, by field and value.
	keys map[string]map[string]map[client.ObjectKey]struct{}
}

func newEntries() *entries {
	return &entries{
		names: map[string]map[string]entry{}, extract: map[string]client.IndexerFunc{},
		keys: map[string]map[string]map[client.ObjectKey]struct{}{},
	}
}

func (e *entries) addIndex(field string, extract client.IndexerFunc) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.extract[field] != nil {
		// The text starts as in controller-runtime, because callers match it.
		return fmt.Errorf("indexer conflict: field %s is indexed already", field)
	}
	e.extract[field] = extract
	e.keys[field] = map[string]map[client.ObjectKey]struct{}{}
	return nil
}

// valuesOf returns the values of the indexed fields of an object.
func (e *entries) valuesOf(obj client.Object) map[string][]string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if len(e.extract) == 0 {
		return nil
	}
	indexed := make(map[string][]string, len(e.extract))
	for field, extract := range e.extract {
		if values := extract(obj); len(values) > 0 {
			indexed[field] = slices.Compact(slices.Sorted(slices.Values(values)))
		}
	}
	return indexed
}

func (e *entries) get(key client.ObjectKey) (entry, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	known, ok := e.names[key.Namespace][key.Name]
	return known, ok
}

func (e *entries) put(key client.ObjectKey, new entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unindex(key)
	names := e.names[key.Namespace]
	if names == nil {
		names = map[string]entry{}
		e.names[key.Namespace] = names
	}
	names[key.Name] = new
	for field, values := range new.indexed {
		for _, value := range values {
			keys := e.keys[field][value]
			if keys == nil {
				keys = map[client.ObjectKey]struct{}{}
				e.keys[field][value] = keys
			}
			keys[key] = struct{}{}
		}
	}
}

// rehash records another hash for the same state of an object.
func (e *entries) rehash(key client.ObjectKey, obj client.Object, hash uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known, ok := e.names[key.Namespace][key.Name]; ok && known.is(obj) {
		known.hash = hash
		e.names[key.Namespace][key.Name] = known
	}
}

func (e *entries) remove(key client.ObjectKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unindex(key)
	names := e.names[key.Namespace]
	delete(names, key.Name)
	if len(names) == 0 {
		delete(e.names, key.Namespace)
	}
}

func (e *entries) unindex(key client.ObjectKey) {
	for field, values := range e.names[key.Namespace][key.Name].indexed {
		for _, value := range values {
			delete(e.keys[field][value], key)
			if len(e.keys[field][value]) == 0 {
				delete(e.keys[field], value)
			}
		}
	}
}

// in returns the keys in a namespace, or all keys if namespace is "".
func (e *entries) in(namespace string) []client.ObjectKey {
	e.mu.RLock()
	defer e.mu.RUnlock()
	found := []client.ObjectKey{}
	for of, names := range e.names {
		if namespace == "" || of == namespace {
			for name := range names {
				found = append(found, client.ObjectKey{Namespace: of, Name: name})
			}
		}
	}
	return found
}

// matching returns the keys in a namespace, or all keys if namespace is "", whose fields have the values.
func (e *entries) matching(namespace string, selector fields.Selector) ([]client.ObjectKey, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	var found map[client.ObjectKey]struct{}
	for i, requirement := range selector.Requirements() {
		if e.extract[requirement.Field] == nil {
			return nil, fmt.Errorf("field %s is not indexed", requirement.Field)
		}
		keys := e.keys[requirement.Field][requirement.Value]
		if i == 0 {
			found = maps.Clone(keys)
			continue
		}
		maps.DeleteFunc(found, func(key client.ObjectKey, _ struct{}) bool {
			_, also := keys[key]
			return !also
		})
	}
	maps.DeleteFunc(found, func(key client.ObjectKey, _ struct{}) bool {
		return namespace != "" && key.Namespace != namespace
	})
	return slices.Collect(maps.Keys(found)), nil
}
