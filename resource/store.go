// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
)

// Store reads and writes objects of several kinds. Its methods behave as the methods of [TypedStore].
//
// Kinds are identified by name: "Kind.version.group", which is Kind.String(), or "Kind.group" or "Kind" if the name is
// unique in the store. The kind of an object is determined by its apiVersion and kind if they are set, otherwise by its
// Go type.
//
// A store is safe for concurrent use.
type Store struct {
	stores map[schema.GroupVersionKind]*TypedStore[Object]
	names  map[string][]*TypedStore[Object]
	types  map[reflect.Type][]*TypedStore[Object]
}

// NewStore returns a store of the kinds. It returns an error that lists all problems if a kind is listed twice or
// [NewTypedStore] returns an error for it. Options: a [ReadSource], default [Cached].
func NewStore(clients ClientGenerator, kinds []Kind, opts ...StoreOption) (*Store, error) {
	s := &Store{
		stores: map[schema.GroupVersionKind]*TypedStore[Object]{},
		names:  map[string][]*TypedStore[Object]{},
		types:  map[reflect.Type][]*TypedStore[Object]{},
	}
	problems := []error{}
	for _, kind := range kinds {
		store, err := NewTypedStore[Object](kind, clients, opts...)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		gvk, t := kind.GroupVersionKind(), reflect.TypeOf(kind.ZeroValue())
		if s.stores[gvk] != nil {
			problems = append(problems, fmt.Errorf("kind %s is listed twice", kind))
			continue
		}
		s.stores[gvk] = store
		s.types[t] = append(s.types[t], store)
		names := map[string]bool{kind.String(): true, kind.GroupKind().String(): true, kind.Kind(): true}
		for name := range names {
			s.names[name] = append(s.names[name], store)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return s, nil
}

// Kind returns the store of one kind.
func (s *Store) Kind(name string) (*TypedStore[Object], error) {
	return one(s.names[name], "name "+name, slices.Collect(maps.Values(s.stores)))
}

// of returns the store of the kind of obj.
func (s *Store) of(obj Object) (*TypedStore[Object], error) {
	if nilcheck.IsNilPointer(obj) {
		return nil, errors.New("object must not be nil")
	}
	if gvk := obj.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
		if store := s.stores[gvk]; store != nil {
			return store, nil
		}
		return nil, fmt.Errorf("no kind %s in the store", gvk)
	}
	t := reflect.TypeOf(obj)
	return one(s.types[t], "Go type "+t.String(), slices.Collect(maps.Values(s.stores)))
}

// one returns the only store with the key.
func one(stores []*TypedStore[Object], key string, all []*TypedStore[Object]) (*TypedStore[Object], error) {
	switch len(stores) {
	case 1:
		return stores[0], nil
	case 0:
		return nil, fmt.Errorf("no kind with the %s in the store; available kinds: %s", key, namesOf(all))
	default:
		return nil, fmt.Errorf("several kinds with the %s in the store: %s", key, namesOf(stores))
	}
}

func namesOf(stores []*TypedStore[Object]) string {
	names := []string{}
	for _, store := range stores {
		names = append(names, store.kind.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Get returns an object, see [TypedStore.Get].
func (s *Store) Get(ctx context.Context, kind string, id Identifier, from ...ReadSource) (Object, error) {
	store, err := s.Kind(kind)
	if err != nil {
		return nil, err
	}
	return store.Get(ctx, id, from...)
}

// List returns all objects that the options select, see [TypedStore.List].
func (s *Store) List(ctx context.Context, kind string, options StoreListOptions) (*TypedList[Object], error) {
	store, err := s.Kind(kind)
	if err != nil {
		return nil, err
	}
	return store.List(ctx, options)
}

// All ranges over the objects that the options select, see [TypedStore.All].
func (s *Store) All(ctx context.Context, kind string, options StoreListOptions) iter.Seq2[Object, error] {
	store, err := s.Kind(kind)
	if err != nil {
		return func(yield func(Object, error) bool) { yield(nil, err) }
	}
	return store.All(ctx, options)
}

// Add creates the object, see [TypedStore.Add].
func (s *Store) Add(ctx context.Context, obj Object) (Object, error) {
	store, err := s.of(obj)
	if err != nil {
		return nil, err
	}
	return store.Add(ctx, obj)
}

// Update replaces the object, see [TypedStore.Update].
func (s *Store) Update(ctx context.Context, id Identifier, obj Object) (Object, error) {
	store, err := s.of(obj)
	if err != nil {
		return nil, err
	}
	return store.Update(ctx, id, obj)
}

// Upsert creates or replaces the object, see [TypedStore.Upsert].
func (s *Store) Upsert(ctx context.Context, id Identifier, obj Object) (Object, error) {
	store, err := s.of(obj)
	if err != nil {
		return nil, err
	}
	return store.Upsert(ctx, id, obj)
}

// UpdateSubresource replaces a subresource of an object, see [TypedStore.UpdateSubresource].
func (s *Store) UpdateSubresource(
	ctx context.Context, kind string, id Identifier, name SubresourceName, obj Object,
) (Object, error) {
	store, err := s.Kind(kind)
	if err != nil {
		return nil, err
	}
	return store.UpdateSubresource(ctx, id, name, obj)
}

// Patch sends a ready-made patch, see [TypedStore.Patch].
func (s *Store) Patch(
	ctx context.Context, kind string, id Identifier, patchType types.PatchType, data []byte, opts ...client.PatchOption,
) (Object, error) {
	store, err := s.Kind(kind)
	if err != nil {
		return nil, err
	}
	return store.Patch(ctx, id, patchType, data, opts...)
}

// Delete requests the deletion of an object, see [TypedStore.Delete].
func (s *Store) Delete(ctx context.Context, kind string, id Identifier, opts ...client.DeleteOption) error {
	store, err := s.Kind(kind)
	if err != nil {
		return err
	}
	return store.Delete(ctx, id, opts...)
}

// ForceDelete deletes an object that may no longer exist, see [TypedStore.ForceDelete].
func (s *Store) ForceDelete(ctx context.Context, kind string, id Identifier, opts ...client.DeleteOption) error {
	store, err := s.Kind(kind)
	if err != nil {
		return err
	}
	return store.ForceDelete(ctx, id, opts...)
}
