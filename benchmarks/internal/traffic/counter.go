// SPDX-License-Identifier: Apache-2.0

// Package traffic counts what a client asks of a Kubernetes API, and can make that slow: both at the one place that
// every request passes, the HTTP transport.
package traffic

import (
	"maps"
	"net/http"
	"sync"
)

// Counter counts the requests of the clients whose transports it wraps. The zero value is ready to use, from several
// goroutines.
type Counter struct {
	mu     sync.Mutex
	counts Counts
	// activity is apart for requests about events, and others.
	activity map[bool]Activity
}

// Counts is how often each sort of request was sent. What is tried again counts again.
type Counts struct {
	Requests map[Request]int
	// Refused are those of them that were answered with a conflict: somebody was faster, or it exists already.
	Refused map[Request]int
}

// Activity is what is going on. Watches are left out, they last.
type Activity struct {
	// Begun is the number of requests so far, Open of those the number without an answer yet.
	Begun, Open int
}

// Wrap returns a transport that counts and passes on. It is a [k8s.io/client-go/transport.WrapperFunc].
func (c *Counter) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		kind, ok := classify(request)
		if !ok {
			return next.RoundTrip(request)
		}
		c.begin(kind)
		response, err := next.RoundTrip(request)
		c.end(kind, err == nil && response.StatusCode == http.StatusConflict)
		return response, err
	})
}

func (c *Counter) begin(kind Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts.Requests == nil {
		c.counts = Counts{Requests: map[Request]int{}, Refused: map[Request]int{}}
		c.activity = map[bool]Activity{}
	}
	c.counts.Requests[kind]++
	if kind.Verb != "watch" {
		now := c.activity[kind.IsEvent()]
		c.activity[kind.IsEvent()] = Activity{Begun: now.Begun + 1, Open: now.Open + 1}
	}
}

func (c *Counter) end(kind Request, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if refused {
		c.counts.Refused[kind]++
	}
	if kind.Verb != "watch" {
		now := c.activity[kind.IsEvent()]
		c.activity[kind.IsEvent()] = Activity{Begun: now.Begun, Open: now.Open - 1}
	}
}

// Counts returns what was counted so far.
func (c *Counter) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Counts{Requests: maps.Clone(c.counts.Requests), Refused: maps.Clone(c.counts.Refused)}
}

// Activity returns what is going on, with or without requests about events.
func (c *Counter) Activity(events bool) Activity {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.activity[false]
	if events {
		sum.Begun += c.activity[true].Begun
		sum.Open += c.activity[true].Open
	}
	return sum
}

// Writes is the number of writes, events apart.
func (c Counts) Writes() int { return writes(c.Requests) }

// Conflicts is the number of these that were refused.
func (c Counts) Conflicts() int { return writes(c.Refused) }

func writes(counts map[Request]int) int {
	total := 0
	for request, times := range counts {
		if request.IsWrite() && !request.IsEvent() {
			total += times
		}
	}
	return total
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
