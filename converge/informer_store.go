// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// informerStore is what an informer has in its cache, as client-go shows it. Its objects are shared with all who read
// them, and its reads are no injection points: as in client-go they cannot fail. Keys are sorted, so that runs are
// deterministic.
type informerStore struct {
	informer *processInformer
	indexers toolscache.Indexers
}

var _ toolscache.Indexer = (*informerStore)(nil)

var errFilledByWatch = errors.New("the cache of an informer is only changed by its watch")

// Add, Update, Delete and Replace return an error.
func (s *informerStore) Add(any) error               { return errFilledByWatch }
func (s *informerStore) Update(any) error            { return errFilledByWatch }
func (s *informerStore) Delete(any) error            { return errFilledByWatch }
func (s *informerStore) Replace([]any, string) error { return errFilledByWatch }

// Resync and Bookmark do nothing.
func (s *informerStore) Resync() error   { return nil }
func (s *informerStore) Bookmark(string) {}

// LastStoreSyncResourceVersion returns the version up to which the cache has all changes.
func (s *informerStore) LastStoreSyncResourceVersion() string { return s.informer.SeenUpTo() }

// List returns all objects, in an order that changes with [FaultListOrder].
func (s *informerStore) List() []any {
	return s.selected(func(any) bool { return true })
}

func (s *informerStore) selected(selects func(any) bool) []any {
	found := []any{}
	for _, stored := range s.informer.process.run.ordered(s.informer.informer) {
		if obj := s.informer.formed(stored); selects(obj) {
			found = append(found, obj)
		}
	}
	return found
}

// ListKeys returns the keys of all objects.
func (s *informerStore) ListKeys() []string { return keysOf(s.List()) }

func keysOf(objects []any) []string {
	keys := make([]string, len(objects))
	for i, obj := range objects {
		keys[i] = client.ObjectKeyFromObject(obj.(client.Object)).String()
		keys[i] = strings.TrimPrefix(keys[i], "/")
	}
	return keys
}

// Get returns the object with the key of another one.
func (s *informerStore) Get(obj any) (item any, exists bool, err error) {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, toolscache.KeyError{Obj: obj, Err: err}
	}
	return s.GetByKey(key)
}

// GetByKey returns the object with a key, which is a name or namespace/name.
func (s *informerStore) GetByKey(key string) (item any, exists bool, err error) {
	name, err := toolscache.ParseObjectName(key)
	if err != nil {
		return nil, false, err
	}
	stored := s.informer.informer.get(name.AsNamespacedName())
	if stored == nil {
		return nil, false, nil
	}
	return s.informer.formed(stored), true, nil
}

// AddIndexers adds indexes.
func (s *informerStore) AddIndexers(added toolscache.Indexers) error {
	for _, name := range slices.Sorted(maps.Keys(added)) {
		if _, exists := s.indexers[name]; exists {
			return fmt.Errorf("indexer conflict: [%s]", name)
		}
	}
	if s.indexers == nil {
		s.indexers = toolscache.Indexers{}
	}
	maps.Copy(s.indexers, added)
	return nil
}

// GetIndexers returns the indexes that were added.
func (s *informerStore) GetIndexers() toolscache.Indexers { return s.indexers }

// Index returns the objects that have a value of an index in common with another one.
func (s *informerStore) Index(name string, obj any) ([]any, error) {
	values, err := s.values(name)
	if err != nil {
		return nil, err
	}
	wanted := values(obj)
	return s.selected(func(obj any) bool {
		return slices.ContainsFunc(values(obj), func(value string) bool { return slices.Contains(wanted, value) })
	}), nil
}

// ByIndex returns the objects that have a value of an index.
func (s *informerStore) ByIndex(name, value string) ([]any, error) {
	values, err := s.values(name)
	if err != nil {
		return nil, err
	}
	return s.selected(func(obj any) bool { return slices.Contains(values(obj), value) }), nil
}

// IndexKeys returns the keys of the objects that have a value of an index.
func (s *informerStore) IndexKeys(name, value string) ([]string, error) {
	objects, err := s.ByIndex(name, value)
	return keysOf(objects), err
}

// ListIndexFuncValues returns all values of an index.
func (s *informerStore) ListIndexFuncValues(name string) []string {
	values, err := s.values(name)
	if err != nil {
		return nil
	}
	var all []string
	for _, obj := range s.List() {
		all = append(all, values(obj)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// values returns the function of an index. As in client-go, it panics if it returns an error.
func (s *informerStore) values(name string) (func(any) []string, error) {
	index, ok := s.indexers[name]
	if !ok {
		return nil, fmt.Errorf("Index with name %s does not exist", name)
	}
	return func(obj any) []string {
		values, err := index(obj)
		if err != nil {
			panic(fmt.Errorf("unable to calculate an index entry on index %q: %w", name, err))
		}
		return values
	}, nil
}
