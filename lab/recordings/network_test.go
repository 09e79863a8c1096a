// SPDX-License-Identifier: Apache-2.0

package recordings

import (
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
)

// lossEvery is the number of writes after which one is lost.
const lossEvery = 20

// lossyNetwork loses writes of a controller: in turns the request, which then has no effect, and the answer.
type lossyNetwork struct {
	http.RoundTripper
	writes atomic.Int64
}

func (n *lossyNetwork) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return n.RoundTripper.RoundTrip(request)
	}
	number := n.writes.Add(1)
	if number%lossEvery != 0 {
		return n.RoundTripper.RoundTrip(request)
	}
	lost := "request"
	if number/lossEvery%2 == 0 {
		lost = "answer"
		response, err := n.RoundTripper.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		_ = response.Body.Close()
	}
	return nil, fmt.Errorf("the %s is lost: %w", lost, os.ErrDeadlineExceeded)
}
