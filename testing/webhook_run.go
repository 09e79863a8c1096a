// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/difference/operations"
	"trueup.dev/stash"
	"trueup.dev/validation"
)

// RunWithContext runs the case as part of t.
func (tc *AdmissionWebhookTestCase) RunWithContext(
	t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactoryWithContext, opts ...RunOption,
) {
	t.Helper()
	ctx, run := startCase(t, tc.Skip, &tc.Now, &tc.Metadata, &tc.Differ, opts)
	defer run.end(t)
	ctx = stash.WithContext(ctx)
	ctx = validation.WithRecursive(ctx)
	ctx = prepare(t, ctx, tc, tc.Prepare)
	defer func() {
		t.Helper()
		cleanUp(t, ctx, tc, tc.CleanUp)
	}()
	if tc.Request == nil {
		t.Fatal("Request field is required")
	}
	if tc.HTTPRequest == nil {
		tc.HTTPRequest = &http.Request{URL: &url.URL{Path: "/"}}
	}

	config := tc.expectConfig(scheme)
	ctx, c := run.open(t, ctx, config, nil)
	requireFactory(t, factory)
	webhook, err := factory(t, ctx, tc, c)
	if err != nil {
		t.Fatalf("Webhook factory failed: %s", err)
	}
	requireProduct(t, "webhook", webhook)

	tc.handle(t, ctx, webhook, config.differ())
	run.assertExpectations(t)
}

// handle calls the webhook with the request, and compares the response.
func (tc *AdmissionWebhookTestCase) handle(
	t *testing.T, ctx context.Context, webhook *admission.Webhook, differ Differ,
) {
	t.Helper()
	if webhook.WithContextFunc != nil {
		ctx = webhook.WithContextFunc(ctx, tc.HTTPRequest)
	}
	request := admission.Request{AdmissionRequest: *tc.Request.DeepCopy()}
	if tc.ShouldPanic {
		if webhook.RecoverPanic == nil {
			webhook.RecoverPanic = new(false)
		}
		mustPanic(t, "Handle()", func() { webhook.Handle(ctx, request) })
		return
	}
	response := webhook.Handle(ctx, request)

	document := tc.Request.Object.Raw
	if len(document) == 0 {
		document = tc.Request.OldObject.Raw
	}
	expected := tc.ExpectedResponse
	tc.ExpectedResponse.DeepCopyInto(&expected.AdmissionResponse)
	for _, r := range []*admission.Response{&expected, &response} {
		if len(r.Patches) > 0 {
			r.Patches = operations.Comparable(r.Patches, document)
		}
		if err := r.Complete(request); err != nil {
			t.Fatalf("unable to complete ExpectedResponse: %s", err)
		}
	}
	if diff := differ.WebhookResponse(expected, response); diff != "" {
		failValue(t, "ExpectedResponse", diff, "ExpectedResponse", incomplete(response))
	}
}

// incomplete returns a response without the fields that Complete sets.
func incomplete(response admission.Response) admission.Response {
	response.UID = ""
	if equality.Semantic.DeepEqual(response.Result, &metav1.Status{Code: http.StatusOK}) {
		response.Result = nil
	}
	if len(response.Patches) > 0 {
		response.Patch, response.PatchType = nil, nil
	}
	return response
}
