// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"time"
)

const (
	firstRetry = 500 * time.Millisecond
	// lastRetry is how often the sources of controller-runtime look for a kind that is not served.
	lastRetry = 10 * time.Second
)

// Retry calls attempt until it succeeds or ctx is done, after 500 ms first and up to 10 s later. failed is called
// after each failure with the error and the number of failures so far; Retry stops when it returns false. Retry
// returns the last error of attempt.
func Retry(
	ctx context.Context, attempt func(ctx context.Context) error, failed func(err error, failures int) bool,
) error {
	for wait, failures := firstRetry, 1; ; wait, failures = min(2*wait, lastRetry), failures+1 {
		err := attempt(ctx)
		if err == nil || !failed(err, failures) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
