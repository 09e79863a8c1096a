// SPDX-License-Identifier: Apache-2.0

// Package datadir creates a directory for a process and locks it while the process lives. A temporary directory is
// removed with the process. If the process is killed, the next one removes it.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	pattern  = "trueup-controlplane-*"
	lockName = "lock"

	// The owner of a directory without a lock file has just created it, or was killed immediately.
	unlockedGrace = 10 * time.Second

	// maxPath leaves room for a file name in the 104 bytes that the path of a unix socket may have.
	maxPath = 80

	removeAttempts = 5
	removePause    = 20 * time.Millisecond
)

// Folder is a directory that this process has locked. The lock belongs to the kernel and ends with the process in every
// case: a directory that can be locked has no owner.
type Folder struct {
	path      string
	temporary bool
	lock      *os.File
}

// Temporary creates a private directory that other users cannot read.
func Temporary() (*Folder, error) {
	parent, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("temporary directory: %w", err)
	}
	if len(parent) > maxPath-len(pattern)-len("4294967295") {
		parent = "/tmp" // the path of a unix socket must be short
	}
	sweep(parent)
	for {
		path, err := os.MkdirTemp(parent, pattern) // mode 0700
		if err != nil {
			return nil, fmt.Errorf("temporary directory %s: %w: set TMPDIR to a directory that you can write to", parent,
				Cause(err))
		}
		lock, err := take(path)
		if errors.Is(err, errVanished) || errors.Is(err, errInUse) {
			continue // another control plane swept it between mkdir and lock
		}
		if err != nil {
			return nil, fmt.Errorf("temporary directory %s: %w", path, err)
		}
		return &Folder{path: path, temporary: true, lock: lock}, nil
	}
}

// Open opens the directory at path, or creates it.
func Open(path string) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("dir %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("dir %s: %w", path, Cause(err))
	}
	lock, err := take(path)
	if err != nil {
		return nil, fmt.Errorf("dir %s: %w", path, err)
	}
	return &Folder{path: path, lock: lock}, nil
}

// Path returns the absolute path of the directory.
func (f *Folder) Path() string { return f.path }

// File returns the path of a file in the directory.
func (f *Folder) File(elements ...string) string {
	return filepath.Join(append([]string{f.path}, elements...)...)
}

// Release releases the lock, and removes the directory if it is temporary.
func (f *Folder) Release() error {
	var err error
	if f.temporary {
		err = remove(f.path)
	}
	return errors.Join(err, f.lock.Close())
}

var (
	errVanished = errors.New("directory was removed")
	errInUse    = errors.New("in use by another control plane")
)

// take locks the directory and writes the process ID into the lock file, for the error of another process.
func take(path string) (lock *os.File, err error) {
	name := filepath.Join(path, lockName)
	lock, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errVanished
	}
	if err != nil {
		return nil, Cause(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
			lock = nil
		}
	}()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return lock, fmt.Errorf("%w%s", errInUse, lockOwner(lock))
		}
		return lock, fmt.Errorf("lock: %w", err)
	}
	// A sweep may have removed the file before it was locked. Then the lock protects nothing.
	locked, err1 := lock.Stat()
	named, err2 := os.Stat(name)
	if err1 != nil || err2 != nil || !os.SameFile(locked, named) {
		return lock, errVanished
	}
	if err := lock.Truncate(0); err != nil {
		return lock, Cause(err)
	}
	if _, err := lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return lock, Cause(err)
	}
	return lock, nil
}

func lockOwner(lock *os.File) string {
	var content [32]byte
	n, _ := lock.ReadAt(content[:], 0)
	if pid, err := strconv.Atoi(strings.TrimSpace(string(content[:n]))); err == nil {
		return fmt.Sprintf(" (process %d)", pid)
	}
	return ""
}

// sweep removes the directories of control planes that were killed. Errors are ignored, because a later start tries
// again.
func sweep(parent string) {
	paths, err := filepath.Glob(filepath.Join(parent, pattern))
	if err != nil {
		return
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || !ownedByUser(info) {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) {
			if time.Since(info.ModTime()) > unlockedGrace {
				_ = remove(path)
			}
			continue
		}
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = remove(path)
		}
		_ = lock.Close()
	}
}

func ownedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// remove retries for a moment: a component that is still writing may add a file while the directory is removed.
func remove(path string) error {
	var err error
	for range removeAttempts {
		if err = os.RemoveAll(path); err == nil {
			return nil
		}
		time.Sleep(removePause)
	}
	return err
}

// Cause strips operation and path from a file error, for messages that name the file themselves.
func Cause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
