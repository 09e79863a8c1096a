// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package lab

import "time"

// cpuTime is not available on this platform.
func cpuTime() (time.Duration, bool) { return 0, false }
