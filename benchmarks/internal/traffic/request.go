// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/http"
	"strings"
)

// Request is a sort of request to a Kubernetes API.
type Request struct {
	// Verb is get, list, watch, create, update, patch or delete.
	Verb string
	// Resource is the plural of the kind, with the subresource if there is one: widgets/status.
	Resource string
}

func (r Request) String() string { return r.Verb + " " + r.Resource }

// IsEvent reports whether the request is about events.
func (r Request) IsEvent() bool { return r.Resource == "events" }

// IsWrite reports whether the request changes objects.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete":
		return true
	default:
		return false
	}
}

var writeVerbs = map[string]string{
	http.MethodPost:   "create",
	http.MethodPut:    "update",
	http.MethodPatch:  "patch",
	http.MethodDelete: "delete",
}

// classify returns the sort of a request, and false for requests that are not about objects, such as discovery. Paths
// are /api/v1/… or /apis/<group>/<version>/…, then namespaces/<namespace>/ if the resource is namespaced, then
// <resource>[/<name>[/<subresource>]].
func classify(request *http.Request) (Request, bool) {
	segments := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case len(segments) > 2 && segments[0] == "api":
		segments = segments[2:]
	case len(segments) > 3 && segments[0] == "apis":
		segments = segments[3:]
	default:
		return Request{}, false
	}
	if len(segments) > 2 && segments[0] == "namespaces" && segments[2] != "status" && segments[2] != "finalize" {
		segments = segments[2:]
	}
	resource := segments[0]
	if len(segments) > 2 {
		resource += "/" + segments[2]
	}
	verb, ok := writeVerbs[request.Method]
	switch {
	case ok:
	case request.Method != http.MethodGet:
		return Request{}, false
	case request.URL.Query().Get("watch") != "" && request.URL.Query().Get("watch") != "false":
		verb = "watch"
	case len(segments) > 1:
		verb = "get"
	default:
		verb = "list"
	}
	return Request{Verb: verb, Resource: resource}, true
}
