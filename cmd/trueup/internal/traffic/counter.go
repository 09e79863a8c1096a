// SPDX-License-Identifier: Apache-2.0

// Package traffic counts the writes of a client to a Kubernetes API in its HTTP transport.
package traffic

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"trueup.dev/internal/serving/apipath"
)

// Write is a type of write.
type Write struct {
	// Resource is the plural of the kind, with the subresource if one was written: websites/status.
	Resource string
	// Verb is create, update, patch or delete.
	Verb string
}

// Count is the number of writes of a type.
type Count struct {
	Write
	Times int
}

// Counter counts the writes of the clients whose transports it wraps. The zero value is ready to use. It is safe for
// concurrent use.
type Counter struct {
	mu        sync.Mutex
	writes    map[Write]int
	events    int
	conflicts int
}

// Wrap returns a transport that counts requests and passes them on. It is a [k8s.io/client-go/transport.WrapperFunc].
func (c *Counter) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if write, ok := classify(request); ok {
			c.count(write, err == nil && response.StatusCode == http.StatusConflict)
		}
		return response, err
	})
}

func (c *Counter) count(write Write, conflict bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if write.Resource == "events" {
		c.events++ // events report the work of a controller and are not part of it
		return
	}
	if c.writes == nil {
		c.writes = map[Write]int{}
	}
	c.writes[write]++
	if conflict {
		c.conflicts++
	}
}

// Writes returns the number of writes without events, sorted by resource and verb.
func (c *Counter) Writes() []Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	var counts []Count
	for write, times := range maps.All(c.writes) {
		counts = append(counts, Count{Write: write, Times: times})
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
	})
	return counts
}

// Total returns the number of writes without events.
func (c *Counter) Total() int {
	total := 0
	for _, count := range c.Writes() {
		total += count.Times
	}
	return total
}

// Events returns the number of written events.
func (c *Counter) Events() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events
}

// Conflicts returns the number of writes, without events, that the API rejected because another client wrote first.
func (c *Counter) Conflicts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conflicts
}

// classify returns what a request writes. It reports false for reads, and for requests that are not for objects.
func classify(r *http.Request) (Write, bool) {
	request, ok := apipath.Parse(r)
	switch request.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return Write{Resource: request.FullResource(), Verb: strings.TrimSuffix(request.Verb, "collection")}, ok
	}
	return Write{}, false
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
