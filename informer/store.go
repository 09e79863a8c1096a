// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"sync"
)

// Store keeps entries for a [CustomCache]. A store may lose any entry at any time, may be unavailable, and may
// return entries that other clients wrote: the informer detects this. One store can serve many informers, of one or
// several processes.
//
// Methods must be safe for concurrent use. They should return within about a second, because the informer delivers
// events one after the other. The informer never changes values, and a store must not change them either.
type Store interface {
	// Get returns the entries for keys, and omits the keys that it does not have. It returns an error if it cannot
	// determine whether it has them.
	Get(ctx context.Context, keys []string) (map[string][]byte, error)
	// Set stores an entry and replaces the previous one. If the store rejects the entry, for example because it is too
	// large, Set must delete the previous one.
	Set(ctx context.Context, key string, value []byte) error
	// Delete deletes an entry. It returns no error if the entry does not exist.
	Delete(ctx context.Context, key string) error
}

// MemoryStore is a [Store] in memory. It keeps encoded objects, which are often smaller than Go values, and shares
// none of them with readers.
type MemoryStore struct {
	mu     sync.RWMutex
	values map[string][]byte
}

var _ Store = (*MemoryStore)(nil)

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{values: map[string][]byte{}}
}

// Get implements [Store].
func (s *MemoryStore) Get(_ context.Context, keys []string) (map[string][]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	values := make(map[string][]byte, len(keys))
	for _, key := range keys {
		if value, ok := s.values[key]; ok {
			values[key] = value
		}
	}
	return values, nil
}

// Set implements [Store].
func (s *MemoryStore) Set(_ context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
	return nil
}

// Delete implements [Store].
func (s *MemoryStore) Delete(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
	return nil
}

// Len returns the number of entries.
func (s *MemoryStore) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.values)
}
