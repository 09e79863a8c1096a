// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sandbox

import (
	"context"
	"io/fs"
	"syscall"
)

// canShare reports whether this system has what shared control planes need.
const canShare = false

func ownSession() *syscall.SysProcAttr { return nil }

func ownedByUser(fs.FileInfo) bool { return false }

func lockLeaseRoot(context.Context, string) (unlock func(), err error) { return nil, errNotShared }
