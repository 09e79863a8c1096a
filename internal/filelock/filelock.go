// SPDX-License-Identifier: Apache-2.0

// Package filelock makes processes of one machine take turns.
package filelock

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const pollInterval = 20 * time.Millisecond

// Lock takes the lock at path and returns a function to release it. While another process, or another call in this one,
// holds the lock, it calls waiting at each attempt, which must return soon. The operating system holds the lock for the
// process and releases it when the process ends for any reason. The file is not removed, because two processes could
// then lock two files with the same name.
func Lock(ctx context.Context, path string, waiting func(holder string)) (unlock func(), err error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		file, err := tryLock(path)
		if err != nil {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if file != nil {
			// The process ID is only shown to waiting processes, so a failure is ignored.
			if err := file.Truncate(0); err == nil {
				_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
			}
			return func() { _ = file.Close() }, nil
		}
		waiting(lockHolder(path))
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// lockHolder returns a description of the process that holds the lock.
func lockHolder(path string) string {
	content, err := os.ReadFile(path)
	pid := strings.TrimSpace(string(content))
	if err != nil || pid == "" {
		return "another process"
	}
	return "process " + pid
}
