// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	authenticationv1 "k8s.io/api/authentication/v1"

	"trueup.dev/resource"
)

// ErrCustomRouteNotFound is returned by a [CustomRouter] for a route that it does not have.
var ErrCustomRouteNotFound = errors.New("custom route not found")

// CustomRouter is an [App] with custom routes: HTTP requests for an object, a namespace or the cluster that are not
// reads or writes of objects. An operator.Runner serves them.
type CustomRouter interface {
	// CallCustomRoute handles a request. It returns [ErrCustomRouteNotFound] for a route that the app does not have. An
	// error that is returned before the response has begun becomes the response: errors of the Kubernetes API keep their
	// status, and other errors have status 500.
	CallCustomRoute(ctx context.Context, response CustomRouteResponseWriter, req *CustomRouteRequest) error
}

// CustomRouteResponseWriter writes the response to a [CustomRouteRequest].
type CustomRouteResponseWriter = http.ResponseWriter

// CustomRouteRequest is a request to a custom route. The API server has authenticated and authorized the user.
type CustomRouteRequest struct {
	// ResourceIdentifier identifies the object of the request. A route of a version has no object: only Group, Version
	// and, if the route is namespaced, Namespace are set. The object may not exist.
	ResourceIdentifier resource.FullIdentifier
	// Path is the path of the route, without the identifier before it and without slashes at its ends, such as "goto".
	Path string
	// URL is the URL of the request.
	URL *url.URL
	// Method is the HTTP method.
	Method string
	// Headers are the HTTP headers, without the credentials of the user.
	Headers http.Header
	// Body is the body of the request. It is never nil.
	Body io.ReadCloser
	// UserInfo identifies the user of the request.
	UserInfo authenticationv1.UserInfo
}
