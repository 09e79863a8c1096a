// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// traffic records the write requests, without events, and those that were answered with a conflict.
type traffic struct {
	mu        sync.Mutex
	writes    []string
	conflicts []string
	// flying is the number of requests without an answer. Others can see what such a request wrote.
	flying   int
	answered sync.Cond
}

func (t *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet || strings.HasSuffix(request.URL.Path, "/events") {
			return next.RoundTrip(request)
		}
		t.add(1)
		response, err := next.RoundTrip(request)
		t.mu.Lock()
		write := request.Method + " " + request.URL.Path
		if err == nil && response.StatusCode == http.StatusConflict {
			t.conflicts = append(t.conflicts, write)
		} else {
			t.writes = append(t.writes, write)
		}
		t.mu.Unlock()
		t.add(-1)
		return response, err
	})
}

// add adds to the number of requests without an answer.
func (t *traffic) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flying += n
	if t.answered.L == nil {
		t.answered.L = &t.mu
	}
	t.answered.Broadcast()
}

// wait waits until all requests are answered. t.mu must be locked.
func (t *traffic) wait() {
	for t.flying > 0 {
		t.answered.Wait()
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// conflicted returns the writes that were answered with a conflict.
func (t *traffic) conflicted() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait()
	return slices.Clone(t.conflicts)
}

// of waits for the answers of all requests, and returns the verbs of the writes to a resource, "configmaps" or
// "resources/status" for example, in order, without those that were answered with a conflict, because other controllers
// write the same objects.
func (t *traffic) of(resource string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait()
	plural, subresource, _ := strings.Cut(resource, "/")
	verbs := []string{}
	for _, write := range t.writes {
		verb, path, _ := strings.Cut(write, " ")
		segments := strings.Split(path, "/")
		at := slices.Index(segments, plural)
		if at < 0 {
			continue
		}
		got := ""
		if at+2 < len(segments) {
			got = segments[at+2]
		}
		if got == subresource {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}
