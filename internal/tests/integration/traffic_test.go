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
	answered  sync.Cond // whose lock is mu
	inFlight  int
	writes    []string
	conflicts []string
}

func (t *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet || strings.HasSuffix(request.URL.Path, "/events") {
			return next.RoundTrip(request)
		}
		t.mu.Lock()
		t.answered.L = &t.mu
		t.inFlight++
		t.mu.Unlock()
		response, err := next.RoundTrip(request)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.inFlight--
		t.answered.Broadcast()
		write := request.Method + " " + request.URL.Path
		if err == nil && response.StatusCode == http.StatusConflict {
			t.conflicts = append(t.conflicts, write)
		} else {
			t.writes = append(t.writes, write)
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// conflicted returns the writes that were answered with a conflict.
func (t *traffic) conflicted() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.conflicts)
}

// of returns the verbs of the writes to a resource, "configmaps" or "resources/status" for example, in order, without
// those that were answered with a conflict, because other controllers write the same objects. It waits for the answers
// to writes that have been sent: a test may have seen their effect before.
func (t *traffic) of(resource string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.inFlight > 0 {
		t.answered.Wait()
	}
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
