// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"maps"
	"net/http"
	"strings"
	"sync"
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

type recordingTransport struct {
	recorder *Recorder
	next     http.RoundTripper
}

func (t recordingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if p, ok := permissionOf(request); ok {
		t.recorder.mu.Lock()
		if t.recorder.used == nil {
			t.recorder.used = Permissions{}
		}
		t.recorder.used[p] = true
		t.recorder.mu.Unlock()
	}
	return t.next.RoundTrip(request)
}

// permissionOf returns the permission that a request needs. It returns false for requests that are not for objects,
// such as discovery.
func permissionOf(request *http.Request) (Permission, bool) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return Permission{}, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	named := len(parts) > 1
	p := Permission{Group: group, Resource: parts[0], Verb: verbOf(request, named)}
	if len(parts) > 2 {
		p.Resource += "/" + parts[2]
	}
	return p, true
}

func verbOf(request *http.Request, named bool) string {
	switch request.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		return "watch"
	}
	if named {
		return "get"
	}
	return "list"
}
