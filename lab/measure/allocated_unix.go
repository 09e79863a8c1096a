// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"golang.org/x/sys/unix"
)

// allocated returns the bytes that a file occupies on disk, or 0 if it does not exist.
func allocated(path string) (int64, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return 0, nil
		}
		return 0, err
	}
	return int64(stat.Blocks) * 512, nil //nolint:unconvert // the type differs between systems
}
