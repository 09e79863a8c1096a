// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"trueup.dev/app"
	"trueup.dev/graph"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/serving/apipath"
	"trueup.dev/resource"
)

// CustomRoutesPath is the path below which [AppRoutes] serves.
const CustomRoutesPath = "/apis/"

// AppRoutes serves the custom routes of an app at the paths that they would have in the API server:
//
//	/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>/<route>   an object
//	/apis/<group>/<version>/<plural>/<name>/<route>                          an object of a cluster-scoped kind
//	/apis/<group>/<version>/namespaces/<namespace>/<route>                   a namespace
//	/apis/<group>/<version>/<route>                                          the cluster
//
// The API server authenticates the bearer token of each request, and authorizes it as a request for the same path of
// its own: the route of an object is a subresource of the object, such as "widgets/goto", and any other route is a
// resource, such as "summary". If the path of a route has several elements, the role names the first. The verbs are
// get, create, update, patch and delete for objects. For other routes, GET is list and DELETE is deletecollection, and
// for methods that the API does not have, such as OPTIONS, the verb is the method in lower case. The answers of the API
// server are used for 10 seconds.
//
// The status of the response is 401 without a valid token, 403 without the permission, and 404 for a route that the app
// does not have. AppRoutes recovers panics, logs them and responds with status 500. The context of a request ends with
// the server.
//
// RBAC:
//
//	// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
//	// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
type AppRoutes struct {
	// App handles the requests. Required.
	App app.CustomRouter

	// Name of the app, for messages. Required.
	Name string

	// Kinds are the kinds whose objects have routes. The versions of their groups may have routes, too. Default: none.
	Kinds []resource.Kind

	// Group is a further group whose versions may have routes. Optional.
	Group string

	// KubeConfig is the connection to the API server that authenticates and authorizes users. Required.
	KubeConfig *rest.Config

	// Logger logs failures, and is the logger of the context of requests. Default: none.
	Logger logr.Logger
}

// Handler returns the HTTP handler for [CustomRoutesPath]. It makes no request.
func (r AppRoutes) Handler() (http.Handler, error) {
	switch {
	case nilcheck.IsNil(r.App):
		return nil, errors.New("AppRoutes must have an App")
	case r.KubeConfig == nil:
		return nil, errors.New("AppRoutes must have a KubeConfig")
	}
	access, err := newReviews(r.KubeConfig)
	return &routeHandler{AppRoutes: r, access: access}, err
}

type routeHandler struct {
	AppRoutes
	access *reviews
}

// DescribeTo implements [graph.Describer].
func (h *routeHandler) DescribeTo(n *graph.Node) {
	n.Step(h.Name)
	n.Needs(newTokenReview(""), "", "create")
	n.Needs(newAccessReview(), "", "create")
}

func (h *routeHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response := &routeResponse{ResponseWriter: w}
	log := h.Logger.WithName("routes").WithValues("method", r.Method, "path", r.URL.Path)
	err := h.serve(logr.NewContext(r.Context(), log), response, r)
	if err == nil {
		return
	}
	status := h.statusOf(err, r)
	switch {
	case status.Code < http.StatusInternalServerError:
		log.V(1).Info("the custom route was refused", "reason", err.Error())
	case r.Context().Err() != nil:
		log.Info("the custom route was interrupted", "reason", err.Error())
	default:
		log.Error(err, "the custom route failed")
	}
	if response.begun {
		if errors.Is(err, errRoutePanicked) {
			panic(http.ErrAbortHandler) // otherwise the client would believe that the response is complete
		}
		return
	}
	writeStatus(response, status)
}

// serve returns the error to respond with.
func (h *routeHandler) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	user, err := h.access.authenticate(ctx, r)
	if err != nil {
		return err
	}
	at, ok := apipath.Parse(r)
	id, isObject := h.identify(at)
	if !ok || !isObject && !h.hasGroup(at.Group) {
		return app.ErrCustomRouteNotFound
	}
	if err := h.access.authorize(ctx, user, at, r.Method); err != nil {
		return err
	}
	req := &app.CustomRouteRequest{
		ResourceIdentifier: id, Path: path.Join(at.Subresource, at.Rest), URL: r.URL, Method: r.Method,
		Headers: r.Header.Clone(), Body: r.Body, UserInfo: user,
	}
	if !isObject {
		req.Path = path.Join(at.Resource, at.Name, req.Path)
	}
	req.Headers.Del("Authorization")
	return h.call(ctx, w, req)
}

// identify returns the identifier of the object of a request. It reports false if the request is not for an object, and
// returns the identifier of the version.
func (h *routeHandler) identify(at apipath.Request) (resource.FullIdentifier, bool) {
	i := slices.IndexFunc(h.Kinds, func(k resource.Kind) bool {
		return k.Group() == at.Group && k.Version() == at.Version && k.Plural() == at.Resource &&
			(k.Scope() == resource.NamespacedScope) == (at.Namespace != "")
	})
	if i < 0 || at.Name == "" || at.Subresource == "" {
		return resource.FullIdentifier{Namespace: at.Namespace, Group: at.Group, Version: at.Version}, false
	}
	return h.Kinds[i].FullIdentifier(resource.Identifier{Namespace: at.Namespace, Name: at.Name}), true
}

func (h *routeHandler) hasGroup(group string) bool {
	return group == h.Group || slices.ContainsFunc(h.Kinds, func(k resource.Kind) bool { return k.Group() == group })
}

var errRoutePanicked = errors.New("the custom route panicked")

// call turns a panic into an error. The client reads the error, so it contains no details; the log does.
func (h *routeHandler) call(ctx context.Context, w http.ResponseWriter, req *app.CustomRouteRequest) (err error) {
	defer func() {
		switch panicked := recover(); panicked {
		case nil:
		case http.ErrAbortHandler:
			panic(panicked)
		default:
			logr.FromContextOrDiscard(ctx).Error(
				fmt.Errorf("%v", panicked), "the custom route panicked", "stack", string(debug.Stack()),
			)
			err = fmt.Errorf("app %q: %w", h.Name, errRoutePanicked)
		}
	}()
	return h.App.CallCustomRoute(ctx, w, req)
}

// statusOf returns the status that the client receives.
func (h *routeHandler) statusOf(err error, r *http.Request) metav1.Status {
	var known apierrs.APIStatus
	switch {
	case errors.Is(err, errUnreviewed):
		return apierrs.NewInternalError(errUnreviewed).Status() // the details are not for users: the log has them
	case errors.As(err, &known) && known.Status().Code >= http.StatusBadRequest:
		status := known.Status()
		status.Message = err.Error()
		return status
	case errors.Is(err, app.ErrCustomRouteNotFound):
		return metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
			Message: fmt.Sprintf("app %q has no custom route %s %s", h.Name, r.Method, r.URL.Path),
		}
	}
	return apierrs.NewInternalError(err).Status()
}

func writeStatus(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	header := w.Header()
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	if status.Code == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", "Bearer")
	}
	header.Set("Content-Type", "application/json")
	header.Del("Content-Length")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // it fails if the client no longer reads
}

// routeResponse knows whether the response has begun.
type routeResponse struct {
	http.ResponseWriter
	begun bool
}

func (w *routeResponse) WriteHeader(code int) {
	w.begun = w.begun || code >= http.StatusOK || code == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(code)
}

func (w *routeResponse) Write(content []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(content)
}

// Flush implements [http.Flusher], for responses that are streamed.
func (w *routeResponse) Flush() {
	w.begun = true
	_ = http.NewResponseController(w.ResponseWriter).Flush() // it fails if the server does not support it
}

// Unwrap gives an [http.ResponseController] the other features of the writer.
func (w *routeResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }
