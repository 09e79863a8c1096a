// SPDX-License-Identifier: Apache-2.0

// Package await waits for conditions in tests.
package await

import (
	"testing"
	"time"
)

// interval is the time between two checks.
const interval = 10 * time.Millisecond

// Nil waits until check returns nil. After the timeout it ends the test with the last error.
func Nil(t testing.TB, timeout time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("timed out after %s: %v", timeout, err)
		}
		<-ticker.C
	}
}
