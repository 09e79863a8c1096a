// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kube-openapi/pkg/spec3"

	"trueup.dev/app"
	"trueup.dev/resource"
)

// AppCustomRouteHandler handles a request to a custom route. An error that it returns before the response has begun
// becomes the response: errors of the Kubernetes API keep their status, and other errors have status 500.
//
// The context ends with the request and with the server.
type AppCustomRouteHandler func(
	ctx context.Context, response app.CustomRouteResponseWriter, req *app.CustomRouteRequest,
) error

// AppCustomRouteMethod is an HTTP method.
type AppCustomRouteMethod string

// The HTTP methods of custom routes.
const (
	AppCustomRouteMethodConnect AppCustomRouteMethod = http.MethodConnect
	AppCustomRouteMethodDelete  AppCustomRouteMethod = http.MethodDelete
	AppCustomRouteMethodGet     AppCustomRouteMethod = http.MethodGet
	AppCustomRouteMethodHead    AppCustomRouteMethod = http.MethodHead
	AppCustomRouteMethodOptions AppCustomRouteMethod = http.MethodOptions
	AppCustomRouteMethodPatch   AppCustomRouteMethod = http.MethodPatch
	AppCustomRouteMethodPost    AppCustomRouteMethod = http.MethodPost
	AppCustomRouteMethodPut     AppCustomRouteMethod = http.MethodPut
	AppCustomRouteMethodTrace   AppCustomRouteMethod = http.MethodTrace
)

var routeMethods = []AppCustomRouteMethod{
	AppCustomRouteMethodConnect, AppCustomRouteMethodDelete, AppCustomRouteMethodGet, AppCustomRouteMethodHead,
	AppCustomRouteMethodOptions, AppCustomRouteMethodPatch, AppCustomRouteMethodPost, AppCustomRouteMethodPut,
	AppCustomRouteMethodTrace,
}

// AppCustomRoute identifies a custom route of a kind.
type AppCustomRoute struct {
	// Method is the HTTP method.
	Method AppCustomRouteMethod
	// Path is the path below the object, such as "goto". A slash at its start or end is ignored.
	Path string
}

// AppCustomRouteHandlers are the custom routes of a kind. The route "goto" of widgets is served at
//
//	/apis/<group>/<version>/namespaces/<namespace>/widgets/<name>/goto
//
// and users need the permission for the subresource widgets/goto: the verb is get for the method GET, and create for
// POST. See operator.AppRoutes.
type AppCustomRouteHandlers map[AppCustomRoute]AppCustomRouteHandler

// AppVersionRoute identifies a custom route of a version.
type AppVersionRoute struct {
	// Namespaced reports whether the route is in each namespace. Defaults to false: it is outside of namespaces.
	Namespaced bool
	// Path is the path below the namespace or the version, such as "summary". A slash at its start or end is ignored.
	Path string
	// Method is the HTTP method.
	Method AppCustomRouteMethod
}

// AppVersionRouteHandlers are the custom routes of a version. The route "summary" is served at one of
//
//	/apis/<group>/<version>/namespaces/<namespace>/summary
//	/apis/<group>/<version>/summary
//
// in the groups of the ManagedKinds, and in the group of the manifest if an operator.Runner serves it. Users need the
// permission for the resource summary: the verb is list for the method GET, and create for POST. See
// operator.AppRoutes.
type AppVersionRouteHandlers map[AppVersionRoute]AppCustomRouteHandler

// routeKey identifies the handlers of a route by method. Routes of versions have only a version, in any group.
type routeKey struct {
	kind       schema.GroupVersionKind
	namespaced bool // only for routes of versions
	path       string
}

// routes are the handlers of an app.
type routes map[routeKey]map[string]AppCustomRouteHandler

func (r routes) add(key routeKey, method AppCustomRouteMethod, handler AppCustomRouteHandler) {
	if r[key] == nil {
		r[key] = map[string]AppCustomRouteHandler{}
	}
	r[key][string(method)] = handler
}

func versionKey(version string, namespaced bool, path string) routeKey {
	return routeKey{
		kind: schema.GroupVersionKind{Version: version}, namespaced: namespaced, path: strings.Trim(path, "/"),
	}
}

// routes returns the handlers of a valid config.
func (c *AppConfig) routes() routes {
	r := routes{}
	for i := range c.ManagedKinds {
		k := &c.ManagedKinds[i]
		for route, handler := range k.CustomRoutes {
			key := routeKey{kind: k.Kind.GroupVersionKind(), path: strings.Trim(route.Path, "/")}
			r.add(key, route.Method, handler)
		}
	}
	for version, handlers := range c.VersionedCustomRoutes {
		for route, handler := range handlers {
			r.add(versionKey(version, route.Namespaced, route.Path), route.Method, handler)
		}
	}
	return r
}

// HasCustomRoutes reports whether the app has custom routes.
func (a *App) HasCustomRoutes() bool { return len(a.routes) > 0 }

// CallCustomRoute implements [app.CustomRouter]. For a route that has other methods, the error has status 405, and the
// response has the header Allow.
func (a *App) CallCustomRoute(
	ctx context.Context, response app.CustomRouteResponseWriter, req *app.CustomRouteRequest,
) error {
	id := req.ResourceIdentifier
	key := routeKey{kind: id.GroupVersionKind(), path: strings.Trim(req.Path, "/")}
	if id.Kind == "" {
		key = versionKey(id.Version, id.Namespace != "", req.Path)
	}
	handlers := a.routes[key]
	if handler, ok := handlers[req.Method]; ok {
		return handler(ctx, response, req)
	}
	if len(handlers) == 0 {
		return fmt.Errorf("%s: %w", key, app.ErrCustomRouteNotFound)
	}
	allowed := strings.Join(slices.Sorted(maps.Keys(handlers)), ", ")
	response.Header().Set("Allow", allowed)
	return methodError{&apierrs.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: fmt.Sprintf("%s does not have method %s: it has %s", key, req.Method, allowed),
	}}}
}

// methodError is the error for a method that a route does not have.
type methodError struct{ *apierrs.StatusError }

func (methodError) Is(target error) bool { return target == app.ErrCustomRouteNotFound }

// String describes the route, for messages.
func (k routeKey) String() string {
	switch {
	case k.kind.Kind != "":
		return fmt.Sprintf("custom route %q of %s", k.path, k.kind)
	case k.namespaced:
		return fmt.Sprintf("namespaced custom route %q of version %s", k.path, k.kind.Version)
	}
	return fmt.Sprintf("custom route %q of version %s", k.path, k.kind.Version)
}

// validateRoutes checks custom routes.
func (c *AppConfig) validateRoutes(p *problems) {
	for i := range c.ManagedKinds {
		k, seen := &c.ManagedKinds[i], map[AppCustomRoute]bool{}
		if len(k.CustomRoutes) > 0 && k.Kind.Schema != nil && k.Kind.Group() == "" {
			p.add("ManagedKinds[%d].CustomRoutes: kinds of the core group have no custom routes", i)
		}
		for _, route := range slices.SortedFunc(maps.Keys(k.CustomRoutes), func(a, b AppCustomRoute) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
		}) {
			field := fmt.Sprintf("ManagedKinds[%d].CustomRoutes[%s %s]", i, route.Method, route.Path)
			validateRoute(p, field, route.Method, route.Path, k.CustomRoutes[route], objectSubresources, seen)
		}
	}
	for _, version := range slices.Sorted(maps.Keys(c.VersionedCustomRoutes)) {
		handlers, seen := c.VersionedCustomRoutes[version], map[bool]map[AppCustomRoute]bool{false: {}, true: {}}
		for _, problem := range kvalidation.IsDNS1035Label(version) {
			p.add("VersionedCustomRoutes has an invalid version %q: %s", version, problem)
		}
		for _, route := range slices.SortedFunc(maps.Keys(handlers), func(a, b AppVersionRoute) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method), boolOrder(a.Namespaced, b.Namespaced))
		}) {
			field := fmt.Sprintf("VersionedCustomRoutes[%s][%s %s]", version, route.Method, route.Path)
			reserved := []string{"namespaces"}
			if route.Namespaced {
				reserved = namespaceSubresources
			}
			validateRoute(p, field, route.Method, route.Path, handlers[route], reserved, seen[route.Namespaced])
			first, _, _ := strings.Cut(strings.Trim(route.Path, "/"), "/")
			if kind, ok := c.kindAt(version, first); ok {
				p.add("%s: %q is the plural of %s, whose objects are at this path", field, first, kind)
			}
		}
	}
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Subresources of the API. A role that allows them for objects must not allow a route.
var (
	objectSubresources    = []string{"finalizers", "scale", "status"}
	namespaceSubresources = []string{"finalize", "status"}
)

func validateRoute(
	p *problems, field string, method AppCustomRouteMethod, path string, handler AppCustomRouteHandler,
	reserved []string, seen map[AppCustomRoute]bool,
) {
	path = strings.Trim(path, "/")
	if !slices.Contains(routeMethods, method) {
		p.add("%s: unknown method %q: must be one of %q", field, method, routeMethods)
	}
	parts := strings.Split(path, "/")
	for _, part := range parts {
		if part == "" || part == "." || part == ".." || url.PathEscape(part) != part {
			p.add("%s: %q is not a path of names that are separated by slashes", field, path)
			break
		}
	}
	if slices.Contains(reserved, parts[0]) {
		p.add("%s: the path must not begin with %q, which the API reserves", field, parts[0])
	}
	if handler == nil {
		p.add("%s: the handler must not be nil", field)
	}
	if route := (AppCustomRoute{Method: method, Path: path}); seen[route] {
		p.add("%s is a duplicate", field)
	} else {
		seen[route] = true
	}
}

// kindAt returns the managed kind with a plural in a version.
func (c *AppConfig) kindAt(version, plural string) (resource.Kind, bool) {
	i := slices.IndexFunc(c.ManagedKinds, func(k AppManagedKind) bool {
		return k.Kind.Schema != nil && k.Kind.Version() == version && k.Kind.Plural() == plural
	})
	if i < 0 {
		return resource.Kind{}, false
	}
	return c.ManagedKinds[i].Kind, true
}

// validateVersion reports the routes of a version in a manifest that have no handler.
func (r routes) validateVersion(p *problems, version app.ManifestVersion) {
	for _, path := range slices.Sorted(maps.Keys(version.Routes.Namespaced)) {
		r.validateOperations(p, versionKey(version.Name, true, path), version.Routes.Namespaced[path])
	}
	for _, path := range slices.Sorted(maps.Keys(version.Routes.Cluster)) {
		r.validateOperations(p, versionKey(version.Name, false, path), version.Routes.Cluster[path])
	}
}

// validateKind reports the routes of a kind in a manifest that have no handler.
func (r routes) validateKind(p *problems, kind schema.GroupVersionKind, paths map[string]spec3.PathProps) {
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		r.validateOperations(p, routeKey{kind: kind, path: strings.Trim(path, "/")}, paths[path])
	}
}

func (r routes) validateOperations(p *problems, key routeKey, operations spec3.PathProps) {
	for _, declared := range []struct {
		method    string
		operation *spec3.Operation
	}{
		{http.MethodDelete, operations.Delete},
		{http.MethodGet, operations.Get},
		{http.MethodHead, operations.Head},
		{http.MethodOptions, operations.Options},
		{http.MethodPatch, operations.Patch},
		{http.MethodPost, operations.Post},
		{http.MethodPut, operations.Put},
		{http.MethodTrace, operations.Trace},
	} {
		if declared.operation != nil && r[key][declared.method] == nil {
			p.add("%s has no handler for %s", key, declared.method)
		}
	}
}
