// SPDX-License-Identifier: Apache-2.0

// Package traffic counts the requests of a client to a Kubernetes API, and can delay them: both in the HTTP transport,
// which every request passes.
package traffic

import (
	"maps"
	"net/http"
	"sync"
)

// Counter counts the requests of the clients whose transports it wraps. The zero value is ready to use. It is safe for
// concurrent use.
type Counter struct {
	mu     sync.Mutex
	counts Counts
	// activity counts requests for events separately.
	activity map[bool]Activity
}

// Counts has the number of requests of each sort. Retries count, too.
type Counts struct {
	Requests map[Request]int
	// Refused has the number of them that were answered with a conflict: a concurrent change, or the object exists
	// already.
	Refused map[Request]int
}

// Activity is the current activity, without watches, which are long-running.
type Activity struct {
	// Begun is the number of requests so far, Open the number of those without a response.
	Begun, Open int
}

// Wrap returns a transport that counts and forwards. It is a [k8s.io/client-go/transport.WrapperFunc].
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

// Counts returns the counts so far.
func (c *Counter) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Counts{Requests: maps.Clone(c.counts.Requests), Refused: maps.Clone(c.counts.Refused)}
}

// Activity returns the activity, with or without requests for events.
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

// Writes returns the number of writes, without events.
func (c Counts) Writes() int { return writes(c.Requests) }

// Conflicts returns the number of writes that were answered with a conflict.
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
