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
	// accounts has the targets by ID.
	accounts map[string]string
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

// Account implements [System].
func (f *Fake) Account(_ context.Context, id string) (string, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	target, found := f.accounts[id]
	return target, found, nil
}

// SetAccount implements [System].
func (f *Fake) SetAccount(_ context.Context, id, target string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if f.accounts == nil {
		f.accounts = map[string]string{}
	}
	f.accounts[id] = target
	return nil
}

// DeleteAccount implements [System].
func (f *Fake) DeleteAccount(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.accounts, id)
	return nil
}

// FailWith makes Take return err from now on for incomplete backups, and SetAccount for all accounts; nil lets them
// succeed again.
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
