// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const lockPollInterval = 200 * time.Millisecond

// lockFile takes the lock at path and returns a function to release it. If another process holds the lock, it calls
// waiting first. The operating system holds the lock for the process and releases it when the process ends for any
// reason. The file is not removed, because two processes could then lock two files with the same name.
func lockFile(ctx context.Context, path string, waiting func(holder string)) (unlock func(), err error) {
	ticker := time.NewTicker(lockPollInterval)
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
