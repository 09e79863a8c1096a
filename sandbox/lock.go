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

// lockFile takes the lock at path, calling waiting first if somebody else has it, and returns what gives it back. The operating system holds the lock for
// the process: it ends with the process however that ends. The file itself stays, since removing it would let two processes lock two files of one name.
func lockFile(ctx context.Context, path string, waiting func(holder string)) (unlock func(), err error) {
	ticker := time.NewTicker(lockPollInterval)
	defer ticker.Stop()
	for {
		file, err := tryLock(path)
		if err != nil {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if file != nil {
			// For those who wait. Nothing depends on it, so a failure is no error.
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

// lockHolder names the process that has the lock, as well as it can.
func lockHolder(path string) string {
	content, err := os.ReadFile(path)
	pid := strings.TrimSpace(string(content))
	if err != nil || pid == "" {
		return "another process"
	}
	return "process " + pid
}
