// SPDX-License-Identifier: Apache-2.0

// Package datadir gives a process a folder of its own: locked while the process lives, and if temporary, removed with it or, after a
// violent death, by the next one.
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

	// A folder without a lock file belongs to a process that has just made it, or that died at once.
	unlockedGrace = 10 * time.Second

	// Room for a file name in the 104 bytes that the path of a unix socket may have on the narrowest system.
	maxPath = 80

	removeAttempts = 5
	removePause    = 20 * time.Millisecond
)

// Folder is a directory this process has locked for itself. The lock is the kernel's and so ends with the process, however that ends:
// a folder whose lock can be taken has no owner.
type Folder struct {
	path      string
	temporary bool
	lock      *os.File
}

// Temporary makes a private folder that no other user can look into.
func Temporary() (*Folder, error) {
	parent, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	if len(parent) > maxPath-len(pattern)-len("4294967295") {
		parent = "/tmp" // a unix socket's path must be short
	}
	sweep(parent)
	for {
		path, err := os.MkdirTemp(parent, pattern) // mode 0700
		if err != nil {
			return nil, fmt.Errorf("temporary folder: %w", Cause(err))
		}
		lock, err := take(path)
		if errors.Is(err, errVanished) || errors.Is(err, errInUse) {
			continue // being swept by another control plane, which came between mkdir and lock
		}
		if err != nil {
			return nil, fmt.Errorf("temporary folder %s: %w", path, err)
		}
		return &Folder{path: path, temporary: true, lock: lock}, nil
	}
}

// Open makes or reuses the folder a user named.
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

// Path is the folder's absolute path.
func (f *Folder) Path() string { return f.path }

// File is the path of a file in the folder.
func (f *Folder) File(elements ...string) string {
	return filepath.Join(append([]string{f.path}, elements...)...)
}

// Release gives the lock back, and removes the folder if it is a temporary one.
func (f *Folder) Release() error {
	var err error
	if f.temporary {
		err = remove(f.path)
	}
	return errors.Join(err, f.lock.Close())
}

var (
	errVanished = errors.New("folder vanished")
	errInUse    = errors.New("in use by another control plane")
)

// take takes the folder's lock, and leaves the process id in it for the message another process will give.
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
	// The file may have been removed by a sweep before the lock was taken, which then guards nothing.
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

// sweep removes the folders of control planes that died without removing them. Nothing here is an error: what cannot be removed now is
// another start's work.
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

// remove tries again for a moment: a component that is still writing may add a file while the folder is emptied.
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
