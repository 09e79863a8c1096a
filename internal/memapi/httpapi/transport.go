// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/serving/apipath"
)

// Transport answers HTTP requests. It is safe for concurrent use if its client is. Its fields are
// required unless marked as optional.
type Transport struct {
	// Client performs the requests, with the context of the HTTP request.
	Client client.WithWatch
	// Registry has the kinds that are served.
	Registry *kinds.Registry
	// Server is the server of the client, if nothing is between them. Then deletions return what was deleted, fields are
	// validated, and requests for what the server does not have are refused. Optional.
	Server *memapi.Server
	// Documents are the OpenAPI documents. Optional: without them, none are served.
	Documents *Documents
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip answers a request. Errors of the API are responses with a Status; the error that it returns is the error of
// the context.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }()
	}
	r := &request{Request: req, client: t.Client, server: t.Server, query: req.URL.Query()}
	content, code, err := t.answer(r)
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil, err
	default:
		status := statusOf(err)
		content, code = status, int(status.Code)
	}
	if stream, ok := content.(*stream); ok {
		response := respond(req, code, "application/json;stream=watch", nil)
		response.Body, response.ContentLength = stream, -1
		return response, nil
	}
	if t.Server != nil && errors.Is(err, errNoPage) && !t.hasVersion(apipath.Split(req.URL.Path)) {
		return respond(req, code, "text/plain; charset=utf-8", []byte("404 page not found\n")), nil
	}
	body, err := json.Marshal(content)
	if err != nil {
		status := statusOf(apierrors.NewInternalError(err))
		body, _ = json.Marshal(status) // which has only strings and numbers
		code = int(status.Code)
	}
	contentType := "application/json"
	if _, ok := content.(*apidiscoveryv2.APIGroupDiscoveryList); ok {
		contentType = aggregatedType
	}
	response := respond(req, code, contentType, body)
	for _, warning := range r.warnings {
		response.Header.Add("Warning", "299 - "+strconv.Quote(warning))
	}
	if status, ok := content.(*metav1.Status); ok && status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		response.Header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return response, nil
}

// errNoPage is the response to a path that the API does not have.
var errNoPage = errorOf(http.StatusNotFound)

// errorOf returns an error with only a status code and its usual text.
func errorOf(code int) error {
	err := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

// statusOf returns the Status of an error. What the client refuses to send is a bad request.
func statusOf(err error) *metav1.Status {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		api = apierrors.NewBadRequest(err.Error())
	}
	status := api.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return &status
}

func respond(req *http.Request, code int, contentType string, body []byte) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: req,
	}
}

// answer returns the content of a response and its status code.
func (t *Transport) answer(r *request) (content any, code int, err error) {
	if accept := r.Header.Get("Accept"); accept != "" && !strings.Contains(accept, "json") &&
		!strings.Contains(accept, "*/*") {
		return nil, 0, errNotAcceptable
	}
	path := apipath.Split(r.URL.Path)
	if found := t.discovery(path, r.Header.Get("Accept")); found != nil {
		return found, http.StatusOK, nil
	}
	if len(path) > 1 && path[0] == "openapi" && t.Documents != nil {
		if content = t.Documents.find(path[1:]); content == nil {
			return nil, 0, errNoPage
		}
		return content, http.StatusOK, nil
	}
	if content, err = r.review(path); content != nil || err != nil {
		return content, http.StatusCreated, err
	}
	if r.target, err = t.targetOf(r.Request); err != nil {
		return nil, 0, err
	}
	if t.Server == nil {
		return r.perform()
	}
	if err := r.refusal(); err != nil {
		return nil, 0, err
	}
	t.asCoreEvent(r)
	t.Server.ValidateFields(r.unknownFields, func() { content, code, err = r.perform() })
	if r.newEvent {
		content = asNewEvent(content)
	}
	return content, code, err
}

// errNotAcceptable is the response to a request that accepts no JSON.
var errNotAcceptable = apierrors.NewGenericServerResponse(
	http.StatusNotAcceptable, "", schema.GroupResource{}, "", "only application/json is served", 0, false,
)
