// SPDX-License-Identifier: Apache-2.0

// Package traffic counts what a client writes to a Kubernetes API, at the one place that every write passes: its HTTP
// transport.
package traffic

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Write is a sort of write.
type Write struct {
	// Resource is the plural of the kind, with the subresource if one was written: websites/status.
	Resource string
	// Verb is create, update, patch or delete.
	Verb string
}

// Count is how often a sort of write was sent.
type Count struct {
	Write
	Times int
}

// Counter counts the writes of the clients whose transports it wraps. The zero value is ready to use, from several
// goroutines.
type Counter struct {
	mu        sync.Mutex
	writes    map[Write]int
	events    int
	conflicts int
}

// Wrap returns a transport that counts and passes on. It is a [k8s.io/client-go/transport.WrapperFunc].
func (c *Counter) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if write, ok := classify(request.Method, request.URL.Path); ok {
			c.count(write, err == nil && response.StatusCode == http.StatusConflict)
		}
		return response, err
	})
}

func (c *Counter) count(write Write, conflict bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if write.Resource == "events" {
		c.events++ // a controller tells what it does: that is not what it does
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

// Writes returns what was written, events apart, in the order of resources and verbs.
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

// Total is the number of all writes but those of events.
func (c *Counter) Total() int {
	total := 0
	for _, count := range c.Writes() {
		total += count.Times
	}
	return total
}

// Events is how many events were written.
func (c *Counter) Events() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events
}

// Conflicts is how many writes, events apart, the API refused because another writer was faster.
func (c *Counter) Conflicts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conflicts
}

var verbs = map[string]string{
	http.MethodPost:   "create",
	http.MethodPut:    "update",
	http.MethodPatch:  "patch",
	http.MethodDelete: "delete",
}

// classify reads a request to the API. Paths are /api/v1/… or /apis/<group>/<version>/…, then namespaces/<namespace>/ if
// the resource has one, then <resource>[/<name>[/<subresource>]].
func classify(method, path string) (Write, bool) {
	verb, ok := verbs[method]
	if !ok {
		return Write{}, false
	}
	segments := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(segments) > 2 && segments[0] == "api":
		segments = segments[2:]
	case len(segments) > 3 && segments[0] == "apis":
		segments = segments[3:]
	default:
		return Write{}, false
	}
	if len(segments) > 2 && segments[0] == "namespaces" && !isNamespaceSubresource(segments[2]) {
		segments = segments[2:]
	}
	resource := segments[0]
	if len(segments) > 2 {
		resource += "/" + segments[2]
	}
	return Write{Resource: resource, Verb: verb}, true
}

func isNamespaceSubresource(segment string) bool {
	return segment == "status" || segment == "finalize"
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
