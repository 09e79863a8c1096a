// SPDX-License-Identifier: Apache-2.0

// Package apipath parses the URLs of the Kubernetes API. It imports only the standard library, so that all packages can
// import it.
package apipath

import (
	"net/http"
	"net/url"
	"strings"
)

// Request is a request for objects.
type Request struct {
	// Verb is the verb of the permission that the request needs. It is empty for methods that the API does not have.
	Verb           string
	Group, Version string
	// Resource is the plural of the kind, and Subresource the part of the object, or empty.
	Resource, Subresource string
	// Namespace is empty for all namespaces, and for cluster-scoped objects. Name is empty for requests for several
	// objects, and for those that create one.
	Namespace, Name string
	// Rest is the path below the subresource, for example in a request through a proxy.
	Rest string
}

// FullResource returns the resource and the subresource as in a role.
func (r Request) FullResource() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// Parse returns what a request is for. It reports false if it is not for objects, as that of discovery.
func Parse(r *http.Request) (Request, bool) {
	request, ok := parsePath(Split(r.URL.Path))
	if ok {
		request.Verb = request.verb(r.Method, r.URL)
	}
	return request, ok
}

// Split returns the segments of a path.
func Split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// parsePath parses /api/v1/… or /apis/<group>/<version>/…, then namespaces/<namespace>/ for requests in a namespace,
// then <resource>[/<name>[/<subresource>]].
func parsePath(path []string) (request Request, ok bool) {
	switch {
	case len(path) > 2 && path[0] == "api":
		request.Version, path = path[1], path[2:]
	case len(path) > 3 && path[0] == "apis":
		request.Group, request.Version, path = path[1], path[2], path[3:]
	default:
		return Request{}, false
	}
	// The subresources of a namespace have the form of a resource in it.
	if path[0] == "namespaces" && len(path) > 2 && path[2] != "status" && path[2] != "finalize" {
		request.Namespace, path = path[1], path[2:]
	}
	request.Resource = path[0]
	if len(path) > 1 {
		request.Name = path[1]
	}
	if len(path) > 2 {
		request.Subresource, request.Rest = path[2], strings.Join(path[3:], "/")
	}
	return request, true
}

func (r Request) verb(method string, from *url.URL) string {
	isNamed := r.Name != ""
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if isNamed {
			return "delete"
		}
		return "deletecollection"
	case http.MethodGet, http.MethodHead:
		if isNamed {
			return "get"
		}
		if watches(from) {
			return "watch"
		}
		return "list"
	}
	return ""
}

// watches reports whether a list is to be continued as a watch. The parameter need not have a value.
func watches(from *url.URL) bool {
	values, ok := from.Query()["watch"]
	return ok && values[0] != "0" && !strings.EqualFold(values[0], "false")
}
