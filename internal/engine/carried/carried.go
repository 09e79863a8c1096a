// SPDX-License-Identifier: Apache-2.0

// Package carried has the keys of the context values that packages stash and time read, and that a root reconciler sets
// for each request. The context of a request is one value which answers all keys.
package carried

import "sync"

// NowKey is the key of the time of a request, a *time.Time that does not change. It is empty, as all keys here, so that
// a lookup does not allocate.
type NowKey struct{}

// StashKey is the key of a [*Stash].
type StashKey struct{}

// Stash holds values by name. The zero value is empty and ready to use. It is safe for concurrent use.
type Stash struct {
	mu     sync.RWMutex
	values map[string]any
}

// Store sets a value.
func (s *Stash) Store(name string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string]any{}
	}
	s.values[name] = value
}

// Load returns a value.
func (s *Stash) Load(name string) (value any, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok = s.values[name]
	return value, ok
}

// Take removes a value and returns it.
func (s *Stash) Take(name string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	value := s.values[name]
	delete(s.values, name)
	return value
}
