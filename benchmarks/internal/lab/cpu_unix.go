// SPDX-License-Identifier: Apache-2.0

//go:build unix

package lab

import (
	"syscall"
	"time"
)

// cpuTime is what this process has spent on all processors so far, its garbage collector included. Unlike time by the
// clock, it hardly depends on what else the machine is busy with.
func cpuTime() (time.Duration, bool) {
	usage := syscall.Rusage{}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, false
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), true
}
