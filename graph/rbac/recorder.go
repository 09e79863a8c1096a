// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"maps"
	"net/http"
	"sync"

	"trueup.dev/internal/apipath"
)

// Recorder collects the permissions that requests to the Kubernetes API need, including requests that fail. Its methods
// are safe for concurrent use.
type Recorder struct {
	mu   sync.Mutex
	used Permissions
}

// Wrap returns a transport that records requests. It is the argument of the method Wrap of a rest.Config.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper { return recordingTransport{r, next} }

// Used returns the permissions that were needed so far.
func (r *Recorder) Used() Permissions {
	r.mu.Lock()
	defer r.mu.Unlock()
	used := maps.Clone(r.used)
	if used == nil {
		used = Permissions{}
	}
	return used
}

func (r *Recorder) add(p Permission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used == nil {
		r.used = Permissions{}
	}
	r.used[p] = true
}

type recordingTransport struct {
	recorder *Recorder
	next     http.RoundTripper
}

func (t recordingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if r, ok := apipath.Parse(request); ok && r.Verb != "" {
		t.recorder.add(Permission{Group: r.Group, Resource: r.FullResource(), Verb: r.Verb})
	}
	return t.next.RoundTrip(request)
}
