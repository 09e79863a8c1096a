// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/http"
	"time"
)

// Delay returns a wrapper for transports that delays every request, as a slow API server would. The start of a watch is
// delayed, its events are not. A request ends early if its context ends.
func Delay(latency time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			timer := time.NewTimer(latency)
			defer timer.Stop()
			select {
			case <-timer.C:
				return next.RoundTrip(request)
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}
		})
	}
}
