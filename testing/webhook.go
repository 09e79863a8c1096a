// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/difference/operations"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	"trueup.dev/validation"
)

// AdmissionWebhookTestCase calls an admission webhook with one request. Its response and its side effects must be the
// expected ones.
//
// The fields of a case are copied before they are used, so that cases can share objects.
type AdmissionWebhookTestCase struct {
	// Name of the case. In [AdmissionWebhookTests] it is the key of the case.
	Name string
	// Focus skips all cases of the suite without a focus, to work on some. The suite fails as long as a case has a focus.
	Focus bool
	// Skip skips this case.
	Skip bool
	// Metadata is for the author: values for the factory and the hooks. It is never nil for them.
	Metadata map[string]interface{}

	// Request is the admission request. Required.
	Request *admission.Request
	// HTTPRequest is the HTTP request with the admission request. Defaults to a request for the path "/".
	HTTPRequest *http.Request
	// WithClientBuilder configures the fake client, for example with an index. Optional.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// WithReactors observe and change calls of the client, in their order, see [ReactionFunc].
	WithReactors []ReactionFunc
	// StatusSubResourceTypes are the kinds with a status subresource. Status writes of other kinds fail.
	StatusSubResourceTypes []client.Object
	// Realistic brings the fake closer to a real API, see [ExpectConfig]. Defaults to false.
	Realistic bool
	// GivenObjects exist before the webhook is called.
	GivenObjects []client.Object
	// APIGivenObjects exist for the APIReader. It sees none of the GivenObjects unless Realistic or on a cluster.
	APIGivenObjects []client.Object
	// GivenAPIResources are what the discovery client and the REST mapper know.
	GivenAPIResources []*metav1.APIResourceList
	// GivenTracks are tracked before the webhook is called.
	GivenTracks []TrackRequest

	// ExpectTracks are the references that the webhook tracks, in order.
	ExpectTracks []TrackRequest
	// ExpectEvents are the events that the webhook records, in order.
	ExpectEvents []Event
	// ExpectApplies are the apply calls, in order.
	ExpectApplies []ApplyRef
	// ExpectCreates are the created objects, in order, before the API sets a name, a uid, and so on.
	ExpectCreates []client.Object
	// ExpectUpdates are the updated objects, in order.
	ExpectUpdates []client.Object
	// ExpectPatches are the patches, in order.
	ExpectPatches []PatchRef
	// ExpectDeletes are the deleted objects, in order.
	ExpectDeletes []DeleteRef
	// ExpectDeleteCollections are the deleted collections, in order.
	ExpectDeleteCollections []DeleteCollectionRef
	// ExpectStatusUpdates are the objects whose status was updated, in order.
	ExpectStatusUpdates []client.Object
	// ExpectStatusPatches are the patches of a status, in order.
	ExpectStatusPatches []PatchRef
	// ExpectStatusApplies are the apply calls for a status, in order.
	ExpectStatusApplies []ApplyRef
	// ExpectSubResources are the writes to subresources other than the status, in order. Nil asserts nothing, unless the
	// case is Realistic.
	ExpectSubResources []SubResourceRef

	// ShouldPanic expects the webhook to panic. The response is then not compared. If the RecoverPanic field
	// of an admission.Webhook is nil, the kit sets it to false.
	ShouldPanic bool
	// ExpectedResponse is the response of the webhook. The uid of the request, the code 200 and the fields that follow
	// from Patches need not be set. Patches are compared as JSON: the Go types of their values do not matter, nor does the
	// order of operations that do not depend on each other.
	ExpectedResponse admission.Response

	// Prepare is called first. It may change any field of tc, and returns the context of the run. Optional.
	Prepare func(t *testing.T, ctx context.Context, tc *AdmissionWebhookTestCase) (context.Context, error)
	// CleanUp is called last, also if the case fails, but not after a Prepare that fails. Optional.
	CleanUp func(t *testing.T, ctx context.Context, tc *AdmissionWebhookTestCase) error
	// Now is the time on the context. Defaults to the current time.
	Now time.Time
	// Differ compares expectations with observations. Defaults to [DefaultDiffer].
	Differ Differ
}

// AdmissionWebhookFactoryWithContext returns the webhook to test. The webhook must use c for all calls. An
// error fails the case. The context enables recursive validation.
type AdmissionWebhookFactoryWithContext func(
	t *testing.T, ctx context.Context, wtc *AdmissionWebhookTestCase, c reconcilers.Config,
) (*admission.Webhook, error)

// expectConfig returns the config of the case.
func (tc *AdmissionWebhookTestCase) expectConfig(scheme *runtime.Scheme) *ExpectConfig {
	return &ExpectConfig{
		Scheme:                  scheme,
		StatusSubResourceTypes:  tc.StatusSubResourceTypes,
		Differ:                  tc.Differ,
		Realistic:               tc.Realistic,
		GivenObjects:            tc.GivenObjects,
		APIGivenObjects:         tc.APIGivenObjects,
		WithClientBuilder:       tc.WithClientBuilder,
		WithReactors:            tc.WithReactors,
		GivenAPIResources:       tc.GivenAPIResources,
		GivenTracks:             tc.GivenTracks,
		ExpectTracks:            tc.ExpectTracks,
		ExpectEvents:            tc.ExpectEvents,
		ExpectApplies:           tc.ExpectApplies,
		ExpectCreates:           tc.ExpectCreates,
		ExpectUpdates:           tc.ExpectUpdates,
		ExpectPatches:           tc.ExpectPatches,
		ExpectDeletes:           tc.ExpectDeletes,
		ExpectDeleteCollections: tc.ExpectDeleteCollections,
		ExpectStatusUpdates:     tc.ExpectStatusUpdates,
		ExpectStatusPatches:     tc.ExpectStatusPatches,
		ExpectStatusApplies:     tc.ExpectStatusApplies,
		ExpectSubResources:      tc.ExpectSubResources,
	}
}

// AdmissionWebhookTests are cases by name. They run in any order, each as a subtest.
type AdmissionWebhookTests map[string]AdmissionWebhookTestCase

// RunWithContext runs the cases. If cases have a focus, it runs only those and fails the suite.
func (wt AdmissionWebhookTests) RunWithContext(
	t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactoryWithContext, opts ...RunOption,
) {
	t.Helper()
	suite := make(AdmissionWebhookTestSuite, 0, len(wt))
	for name, tc := range wt {
		tc.Name = name
		suite = append(suite, tc)
	}
	suite.RunWithContext(t, scheme, factory, opts...)
}

// AdmissionWebhookTestSuite is a list of cases. They run in order, each as a subtest.
type AdmissionWebhookTestSuite []AdmissionWebhookTestCase

// RunWithContext runs the cases. If cases have a focus, it runs only those and fails the suite.
func (ts AdmissionWebhookTestSuite) RunWithContext(
	t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactoryWithContext, opts ...RunOption,
) {
	t.Helper()
	suite := suite{}
	for _, tc := range ts {
		suite.add(tc.Name, tc.Focus, func(t *testing.T) {
			t.Helper()
			tc.RunWithContext(t, scheme, factory, opts...)
		})
	}
	suite.run(t)
}

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
