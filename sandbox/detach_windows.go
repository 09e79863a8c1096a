// SPDX-License-Identifier: Apache-2.0

package sandbox

import "syscall"

// detached protects the child from signals of the console: on Ctrl-C this process decides when to stop the control
// plane, and may still need it to clean up.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
