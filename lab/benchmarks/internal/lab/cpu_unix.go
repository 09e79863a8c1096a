// SPDX-License-Identifier: Apache-2.0

//go:build unix

package lab

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time of this process, including garbage collection. Unlike wall-clock time, it hardly
// depends on other load on the machine.
func cpuTime() (time.Duration, bool) {
	usage := syscall.Rusage{}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, false
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), true
}
