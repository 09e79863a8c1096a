// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// traffic counts the requests of managers that change something, and can fail them.
type traffic struct {
	mu sync.Mutex
	// lose, unless it is nil, tells the requests whose answers are lost, and what happens before that is noticed.
	lose func(*http.Request) (lost bool, before func())
	// refuse, unless it is nil, tells the requests that do not reach the server.
	refuse func(*http.Request) bool
	counts map[string]int
	last   time.Time
}

// quiet is for how long there must be no request for everything to be over.
const quiet = 300 * time.Millisecond

// idle returns how long the last request is ago.
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

// take returns the counts since it was called last.
func (t *traffic) take() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := t.counts
	t.counts = nil
	return counts
}

// losing and refusing set what is to fail.
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
