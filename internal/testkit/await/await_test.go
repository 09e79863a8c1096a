// SPDX-License-Identifier: Apache-2.0

package await_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"trueup.dev/internal/testkit/await"
)

// recorder is a testing.TB that records a fatal failure and ends its goroutine.
type recorder struct {
	testing.TB
	failure string
}

func (*recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestNil(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		after  time.Duration
		want   string
	}{
		"immediately": {reason: "the condition is already met"},
		"in time":     {reason: "the condition is met before the timeout", after: 30 * time.Second},
		"not in time": {
			reason: "the test ends with the last error", after: 2 * time.Minute, want: "timed out after 1m0s: not yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, begin, done := &recorder{TB: t}, time.Now(), make(chan struct{})
				go func() {
					defer close(done)
					await.Nil(r, time.Minute, func() error {
						if time.Since(begin) < tc.after {
							return errors.New("not yet")
						}
						return nil
					})
				}()
				<-done
				if r.failure != tc.want {
					t.Errorf("failure = %q, want %q: %s", r.failure, tc.want, tc.reason)
				}
			})
		})
	}
}
