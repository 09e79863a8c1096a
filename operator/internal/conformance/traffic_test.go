// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// traffic counts the write requests of managers, and can fail them.
type traffic struct {
	mu sync.Mutex
	// lose, if set, selects the requests whose responses are lost, and returns a function to run before the client
	// notices.
	lose func(*http.Request) (lost bool, before func())
	// refuse, if set, selects the requests that do not reach the server.
	refuse func(*http.Request) bool
	counts map[string]int
	last   time.Time
}

// quiet is the time without requests after which all work is done.
const quiet = 300 * time.Millisecond

// idle returns the time since the last request.
func (t *traffic) idle() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.last)
}

var errLost = errors.New("connection reset by the test")

func (t *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		lose, refuse := t.note(request)
		if refuse != nil && refuse(request) {
			return nil, errLost
		}
		lost, before := false, func() {}
		if lose != nil {
			lost, before = lose(request)
		}
		response, err := next.RoundTrip(request)
		if !lost || err != nil {
			return response, err
		}
		before()
		return nil, errors.Join(errLost, response.Body.Close())
	})
}

func (t *traffic) note(request *http.Request) (
	lose func(*http.Request) (bool, func()), refuse func(*http.Request) bool,
) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what := request.Method
	if strings.HasSuffix(request.URL.Path, "/status") {
		what += " status"
	}
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	if request.Method != http.MethodGet && !strings.Contains(request.URL.Path, "/events") {
		t.counts[what]++
		t.last = time.Now()
	}
	return t.lose, t.refuse
}

// take returns the counts since its last call.
func (t *traffic) take() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := t.counts
	t.counts = nil
	return counts
}

// losing and refusing set the requests to fail.
func (t *traffic) losing(lose func(*http.Request) (bool, func())) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lose = lose
}

func (t *traffic) refusing(refuse func(*http.Request) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refuse = refuse
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
