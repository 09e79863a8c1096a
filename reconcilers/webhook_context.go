// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type (
	admissionRequestKey  struct{}
	admissionResponseKey struct{}
	httpRequestKey       struct{}
)

// StashAdmissionRequest puts the admission request on the context.
func StashAdmissionRequest(ctx context.Context, req admission.Request) context.Context {
	return context.WithValue(ctx, admissionRequestKey{}, req)
}

// RetrieveAdmissionRequest returns the current admission request, or a zero request outside of an
// [AdmissionWebhookAdapter].
func RetrieveAdmissionRequest(ctx context.Context) admission.Request {
	req, _ := ctx.Value(admissionRequestKey{}).(admission.Request)
	return req
}

// StashAdmissionResponse puts the admission response on the context.
func StashAdmissionResponse(ctx context.Context, resp *admission.Response) context.Context {
	return context.WithValue(ctx, admissionResponseKey{}, resp)
}

// RetrieveAdmissionResponse returns the response to the current admission request, which reconcilers may change. It
// returns nil outside of an [AdmissionWebhookAdapter].
func RetrieveAdmissionResponse(ctx context.Context) *admission.Response {
	resp, _ := ctx.Value(admissionResponseKey{}).(*admission.Response)
	return resp
}

// StashHTTPRequest puts the HTTP request on the context.
func StashHTTPRequest(ctx context.Context, req *http.Request) context.Context {
	return context.WithValue(ctx, httpRequestKey{}, req)
}

// RetrieveHTTPRequest returns the HTTP request of the current admission request, or nil outside of an
// [AdmissionWebhookAdapter].
func RetrieveHTTPRequest(ctx context.Context) *http.Request {
	req, _ := ctx.Value(httpRequestKey{}).(*http.Request)
	return req
}
