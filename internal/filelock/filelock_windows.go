// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// errSharingViolation is ERROR_SHARING_VIOLATION, which package syscall does not define.
const errSharingViolation = syscall.Errno(32)

// tryLock returns the locked file, or nil if another process has locked it. Closing the file unlocks it. While it is
// locked, no other process can open the file for writing, but reading the holder is possible.
func tryLock(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	handle, err := syscall.CreateFile(
		name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, syscall.FILE_SHARE_READ, nil, syscall.OPEN_ALWAYS,
		syscall.FILE_ATTRIBUTE_NORMAL, 0,
	)
	if errors.Is(err, errSharingViolation) {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(handle), path), nil
}
