// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// Process identifies a process. Its ID alone does not: the system uses it again.
type Process struct {
	PID int `json:"pid"`
	// Start is the time of its start as in /proc, which only Linux has.
	Start string `json:"start"`
}

func (p Process) exists() bool {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "stat"))
	if err != nil {
		return false
	}
	// The name in parentheses may contain any character. The state is the first field after it, the start the 20th.
	const state, start = 0, 19
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	return len(fields) > start && string(fields[start]) == p.Start && string(fields[state]) != "Z"
}
