// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package e2e

import "testing"

func mountSmallDisk(t *testing.T, _ string, _ int) {
	t.Helper()
	t.Skip("a small disk is only mounted on Linux")
}

func isDiskFull(error) bool { return false }
