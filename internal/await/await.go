// SPDX-License-Identifier: Apache-2.0

// Package await is how tests wait: for a condition, and never for a while.
package await

import (
	"testing"
	"time"
)

// interval is the time between two looks.
const interval = 10 * time.Millisecond

// Nil waits until check has nothing to object to. When patience is over it ends the test with the last objection.
func Nil(t testing.TB, patience time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still, after %s: %v", patience, err)
		}
		<-ticker.C
	}
}
