// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"sync"
)

// Store keeps entries for a [CustomCacheInformer]. It may lose or forget any of them at any time, be out of reach, or
// have entries that others have written: the informer notices. One store can serve many informers, of one process or of
// several.
//
// Methods must be safe for concurrent use, and should return within a second or so, since what happens to objects is
// told one after the other. The informer never changes values, and a store must not either.
type Store interface {
	// Get returns the entries of these keys, without those that it does not have. An error is for a store that cannot
	// tell.
	Get(ctx context.Context, keys []string) (map[string][]byte, error)
	// Set keeps an entry, in place of the one before. A store that does not want to keep it, because it is too large, must
	// forget the one before.
	Set(ctx context.Context, key string, value []byte) error
	// Delete forgets an entry. It is no error if there is none.
	Delete(ctx context.Context, key string) error
}

// MemoryStore is a [Store] in memory. The encoded objects in it are often smaller than they are as Go values, and none
// is shared with those who read it.
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
