// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/http"
	"time"
)

// Delay returns a wrapper for transports that holds every request back for the time, as a slow API server would. A
// watch is slow to begin; what it then tells is not. A request whose context ends does not wait any longer.
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
