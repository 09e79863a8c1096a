// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"slices"
	"sync"
)

// Fake is a [System] for tests, in memory. The zero value completes each backup at its second call.
type Fake struct {
	mu    sync.Mutex
	err   error
	taken []Request
	done  map[string]bool
}

var _ System = (*Fake)(nil)

// Take implements [System].
func (f *Fake) Take(_ context.Context, request Request) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done[request.ID] {
		return true, nil
	}
	if f.err != nil {
		return false, f.err
	}
	if f.done == nil {
		f.done = map[string]bool{}
	}
	_, started := f.done[request.ID]
	f.done[request.ID] = started
	if !started {
		f.taken = append(f.taken, request)
	}
	return started, nil
}

// FailWith makes Take return err from now on for incomplete backups; nil lets it succeed again.
func (f *Fake) FailWith(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// Taken returns the started backups, in order.
func (f *Fake) Taken() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.taken)
}
