// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/http"

	"trueup.dev/internal/serving/apipath"
)

// Request is a sort of request to a Kubernetes API.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
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
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	default:
		return false
	}
}

// classify returns the sort of a request, and false for requests that are not about objects, such as discovery.
func classify(r *http.Request) (Request, bool) {
	request, ok := apipath.Parse(r)
	return Request{Verb: request.Verb, Resource: request.FullResource()}, ok && request.Verb != ""
}
