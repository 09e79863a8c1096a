// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// canShare reports whether this system has what shared control planes need.
const canShare = true

// ownSession protects the child from signals of the terminal, and from its end: the child outlives this process.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func ownedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

const lockPollInterval = 20 * time.Millisecond

// lockLeaseRoot creates and locks the directory of the user's shared control planes. The last control plane removes the
// directory, so it may have to be created again. Closing the directory unlocks it.
func lockLeaseRoot(ctx context.Context, path string) (unlock func(), err error) {
	ticker := time.NewTicker(lockPollInterval)
	defer ticker.Stop()
	for {
		dir, err := tryLockDir(path)
		if err != nil {
			return nil, err
		}
		if dir != nil {
			return func() { _ = dir.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock of %s: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// tryLockDir returns the locked directory, or nil if another process has locked or removed it.
func tryLockDir(path string) (*os.File, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := checkPrivate(path, info); err != nil {
		return nil, err
	}
	dir, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		// A lock of a directory that no longer has this name protects nothing.
		locked, lockedErr := dir.Stat()
		named, namedErr := os.Lstat(path)
		if lockedErr == nil && namedErr == nil && os.SameFile(locked, named) {
			return dir, nil
		}
	}
	_ = dir.Close()
	if err == nil || errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, nil
	}
	return nil, err
}
