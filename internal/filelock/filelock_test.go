// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside, most atomic.Int32
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			unlock, err := Lock(t.Context(), path, func(string) {})
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), inside.Add(1)))
			inside.Add(-1)
			unlock()
		})
	}
	group.Wait()
	if most.Load() != 1 {
		t.Errorf("%d goroutines had the lock at the same time", most.Load())
	}
}

func TestLockWaitsForHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(t.Context(), path, func(string) { t.Error("waits for a free lock") })
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()

	cause := errors.New("canceled by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	var holder string
	_, err = Lock(ctx, path, func(h string) {
		holder = h
		cancel(cause)
	})
	if !errors.Is(err, cause) {
		t.Errorf("got error %v, want one that wraps %q", err, cause)
	}
	if want := fmt.Sprint("process ", os.Getpid()); holder != want {
		t.Errorf("waited for %q, want %q", holder, want)
	}
}

func TestLockError(t *testing.T) {
	_, err := Lock(t.Context(), filepath.Join(t.TempDir(), "missing", "lock"), func(string) {})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v, want that the directory does not exist", err)
	}
}
