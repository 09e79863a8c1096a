// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// separateStderr returns standard error for the messages of this command, and redirects the file descriptor itself to
// /dev/null. Libraries in Kubernetes write to it without a logger, as the etcd client does when it is stopped, and a
// parent would show that to its user. Output of the runtime in a crash is still written to standard error.
func separateStderr() (*os.File, error) {
	duplicate, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	stderr := os.NewFile(uintptr(duplicate), os.Stderr.Name())
	if err := debug.SetCrashOutput(stderr, debug.CrashOptions{}); err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return stderr, errors.Join(unix.Dup2(int(null.Fd()), int(os.Stderr.Fd())), null.Close())
}
