// SPDX-License-Identifier: Apache-2.0

package sandbox

import "syscall"

// detached keeps signals of the console from the child: on Ctrl-C this process decides what happens to the control plane and when, and may still need it to
// clean up.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
