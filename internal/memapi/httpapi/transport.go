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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/kinds"
)

// Transport answers HTTP requests. It is safe for concurrent use if its client is. Its fields are required.
type Transport struct {
	// Client performs the requests, with the context of the HTTP request.
	Client client.WithWatch
	// Registry has the kinds that are served.
	Registry *kinds.Registry
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip answers a request. Errors of the API are responses with a Status; the error that it returns is that of the
// context.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }()
	}
	content, code, err := t.answer(req)
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
	body, err := json.Marshal(content)
	if err != nil {
		status := statusOf(apierrors.NewInternalError(err))
		body, _ = json.Marshal(status) // which has only strings and numbers
		code = int(status.Code)
	}
	response := respond(req, code, "application/json", body)
	if status, ok := content.(*metav1.Status); ok && status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		response.Header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return response, nil
}

// errNoPage is the response to a path that the API does not have.
var errNoPage = apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, true)

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
func (t *Transport) answer(req *http.Request) (content any, code int, err error) {
	path := split(req.URL.Path)
	if found := t.discovery(path); found != nil {
		return found, http.StatusOK, nil
	}
	target, err := t.targetOf(path)
	if err != nil {
		return nil, 0, err
	}
	return t.perform(req, target)
}
