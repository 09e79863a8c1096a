// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"math/rand/v2"
	"sync"
)

// stripedLock is a sync.RWMutex for many readers. Readers of a single RWMutex do not exclude each other, but they
// contend for the memory of its counter: renewing tracks on two processors took as long as on one. Here each reader
// locks one of several stripes, chosen at random, and a writer locks all of them.
type stripedLock [8]struct {
	sync.RWMutex
	_ [128]byte // processors fetch up to 128 bytes at once; stripes must not share them
}

// RLock locks one stripe for reading and returns the lock to unlock.
func (l *stripedLock) RLock() *sync.RWMutex {
	stripe := &l[rand.Uint32()%uint32(len(l))].RWMutex
	stripe.RLock()
	return stripe
}

func (l *stripedLock) Lock() {
	for i := range l {
		l[i].Lock()
	}
}

func (l *stripedLock) Unlock() {
	for i := range l {
		l[i].Unlock()
	}
}
