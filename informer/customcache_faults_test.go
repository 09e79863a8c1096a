// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
)

var errFault = errors.New("the store has failed")

// faultyStore injects all faults of a store at random.
type faultyStore struct {
	*MemoryStore
	rateMu sync.Mutex
	chance *rand.Rand
	// rate is the probability of a fault, from 0 to 1.
	rate float64
	// former holds previous values, by key.
	former map[string][]byte
	faults int
}

func newFaultyStore(chance *rand.Rand, rate float64) *faultyStore {
	return &faultyStore{MemoryStore: NewMemoryStore(), chance: chance, rate: rate, former: map[string][]byte{}}
}

// fault returns the index of one of n faults, or n for no fault.
func (s *faultyStore) fault(n int) int {
	s.rateMu.Lock()
	defer s.rateMu.Unlock()
	if s.chance.Float64() >= s.rate {
		return n
	}
	s.faults++
	return s.chance.IntN(n)
}

func (s *faultyStore) setRate(rate float64) {
	s.rateMu.Lock()
	defer s.rateMu.Unlock()
	s.rate = rate
}

func (s *faultyStore) Get(ctx context.Context, keys []string) (map[string][]byte, error) {
	values, _ := s.MemoryStore.Get(ctx, keys)
	switch s.fault(6) {
	case 0:
		return nil, errFault
	case 1: // a part of it
		for _, key := range keys[:len(keys)/2] {
			delete(values, key)
		}
		return values, errFault
	case 2: // evicted
		clear(values)
	case 3: // stale
		s.rateMu.Lock()
		defer s.rateMu.Unlock()
		maps.Copy(values, s.former)
	case 4: // damaged
		for key, value := range values {
			values[key] = bytes.Replace(value, []byte(`"value"`), []byte(`"VALUE"`), 1)
		}
	case 5: // of another object
		all := slices.Collect(maps.Values(values))
		for key := range values {
			values[key] = all[0]
		}
	}
	return values, nil
}

func (s *faultyStore) Set(ctx context.Context, key string, value []byte) error {
	before, _ := s.MemoryStore.Get(ctx, []string{key})
	s.rateMu.Lock()
	maps.Copy(s.former, before)
	s.rateMu.Unlock()
	switch s.fault(4) {
	case 0:
		return errFault
	case 1: // done nevertheless
		_ = s.MemoryStore.Set(ctx, key, value)
		return errFault
	case 2: // not written, and no error
		return nil
	case 3: // lost
		return s.MemoryStore.Delete(ctx, key)
	}
	return s.MemoryStore.Set(ctx, key, value)
}

func (s *faultyStore) Delete(ctx context.Context, key string) error {
	switch s.fault(2) {
	case 0:
		return errFault
	case 1:
		return nil
	}
	return s.MemoryStore.Delete(ctx, key)
}
