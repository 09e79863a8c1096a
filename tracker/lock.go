// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"math/rand/v2"
	"sync"
)

// stripedLock is a sync.RWMutex for many readers. Those of an RWMutex do not
// exclude each other, but they wait for the memory in which they are counted:
// renewing tracks on two processors took as long as on one. Here they are
// counted at several places, chosen at random, which the writers lock all.
type stripedLock [8]struct {
	sync.RWMutex
	_ [128]byte // processors fetch this much at once, stripes must not share it
}

// RLock locks for reading and returns what to unlock.
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
