// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

// ReconcilerTestCase calls a whole reconciler with one request. The API has the given objects. The side effects of the
// reconciler must be the expected ones; a kind of side effect that the case does not mention must not occur.
//
// The fields of a case are copied before they are used, so that cases can share objects.
type ReconcilerTestCase struct {
	// Name of the case. In [ReconcilerTests] it is the key of the case.
	Name string
	// Focus skips all cases of the suite without a focus, to work on some. The suite fails as long as a case has a focus.
	Focus bool
	// Skip skips this case.
	Skip bool
	// Metadata is for the author: values for the factory and the hooks. It is never nil for them.
	Metadata map[string]interface{}

	// Request is the request for the reconciler.
	Request reconcilers.Request
	// Key is the object to reconcile if Request has none.
	//
	// Deprecated: use Request.
	Key types.NamespacedName
	// WithReactors observe and change calls of the client, in their order, see [ReactionFunc].
	WithReactors []ReactionFunc
	// WithClientBuilder configures the fake client, for example with an index. Optional.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// StatusSubResourceTypes are the kinds with a status subresource. Status writes of other kinds fail.
	StatusSubResourceTypes []client.Object
	// Realistic brings the fake closer to a real API, see [ExpectConfig]. Defaults to false.
	Realistic bool
	// GivenObjects exist before the reconciler is called.
	GivenObjects []client.Object
	// APIGivenObjects exist for the APIReader. It sees none of the GivenObjects unless Realistic or on a cluster.
	APIGivenObjects []client.Object
	// GivenAPIResources are what the discovery client and the REST mapper know.
	GivenAPIResources []*metav1.APIResourceList
	// GivenTracks are tracked before the reconciler is called.
	GivenTracks []TrackRequest

	// ExpectTracks are the references that the reconciler tracks, in order.
	ExpectTracks []TrackRequest
	// ExpectEvents are the events that the reconciler records, in order.
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
	// ExpectWiring is what the reconciler asks of a manager when it is set up. Nil asserts nothing. It needs a further
	// call of the factory.
	ExpectWiring *Wiring
	// AdditionalConfigs are further configs, by name. The reconciler gets them by [reconcilers.RetrieveAdditionalConfigs].
	AdditionalConfigs map[string]ExpectConfig

	// ShouldErr expects the reconciler to return an error. ExpectedResult is then not compared.
	ShouldErr bool
	// ExpectedResult is the result that the reconciler returns.
	ExpectedResult reconcilers.Result
	// Verify makes further assertions about the result and the error of the reconciler. Optional.
	Verify VerifyFunc

	// Prepare is called first. It may change any field of tc, and returns the context of the run. Optional.
	Prepare func(t *testing.T, ctx context.Context, tc *ReconcilerTestCase) (context.Context, error)
	// CleanUp is called last, also if the case fails, but not after a Prepare that fails. Optional.
	CleanUp func(t *testing.T, ctx context.Context, tc *ReconcilerTestCase) error
	// Now is the time for the reconciler, see [trueup.dev/time]. Defaults to the current time.
	Now time.Time
	// Differ compares expectations with observations. Defaults to [DefaultDiffer].
	Differ Differ
}

// ReconcilerFactory returns the reconciler to test. The reconciler must use c for all calls.
type ReconcilerFactory func(t *testing.T, rtc *ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler

// Run runs the case as part of t.
func (tc *ReconcilerTestCase) Run(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory, opts ...RunOption) {
	t.Helper()
	ctx, run := startCase(t, tc.Skip, &tc.Now, &tc.Metadata, &tc.Differ, opts)
	defer run.end(t)
	ctx = prepare(t, ctx, tc, tc.Prepare)
	defer func() {
		t.Helper()
		cleanUp(t, ctx, tc, tc.CleanUp)
	}()
	if tc.Request == (reconcilers.Request{}) {
		tc.Request.NamespacedName = tc.Key
	}

	config := tc.expectConfig(scheme)
	ctx, c := run.open(t, ctx, config, tc.AdditionalConfigs)
	requireFactory(t, factory)
	reconciler := factory(t, tc, c)
	requireProduct(t, "reconciler", reconciler)
	ctx = validation.WithRecursive(ctx)
	requireValid(t, ctx, "reconciler", reconciler)

	result, err := reconciler.Reconcile(ctx, tc.Request)

	outcome{
		shouldErr: tc.ShouldErr, result: tc.ExpectedResult, verify: tc.Verify, differ: config.differ(),
	}.assert(t, result, err)
	run.assertExpectations(t)
	if t.Failed() {
		if text := unknownRequest(tc.Request, tc.GivenObjects); text != "" {
			t.Log(text)
		}
	}
	if tc.ExpectWiring != nil {
		wiring, err := recordReconciler(
			ctx, scheme, func(c reconcilers.Config) any { return factory(t, tc, c) }, tc.AdditionalConfigs, tc.GivenObjects,
		)
		assertWiring(t, tc.ExpectWiring, wiring, err)
	}
}

// unknownRequest returns a text if a request names none of the given objects. A case can mean it: the object no longer
// exists.
func unknownRequest(req reconcilers.Request, given []client.Object) string {
	if req.NamespacedName == (types.NamespacedName{}) {
		return "" // the reconciler of the case does not use it
	}
	names := []string{}
	for _, obj := range given {
		if nilcheck.IsNilPointer(obj) {
			continue
		}
		if client.ObjectKeyFromObject(obj) == req.NamespacedName {
			return ""
		}
		names = append(names, fmt.Sprintf("%T %s", obj, client.ObjectKeyFromObject(obj)))
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("Request names %s, which is none of GivenObjects: %s", req, strings.Join(names, ", "))
}

// expectConfig returns the main config of the case.
func (tc *ReconcilerTestCase) expectConfig(scheme *runtime.Scheme) *ExpectConfig {
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

// ReconcilerTests are cases by name. They run in any order, each as a subtest.
type ReconcilerTests map[string]ReconcilerTestCase

// Run runs the cases. If cases have a focus, it runs only those and fails the suite.
func (rt ReconcilerTests) Run(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory, opts ...RunOption) {
	t.Helper()
	suite := make(ReconcilerTestSuite, 0, len(rt))
	for name, tc := range rt {
		tc.Name = name
		suite = append(suite, tc)
	}
	suite.Run(t, scheme, factory, opts...)
}

// ReconcilerTestSuite is a list of cases. They run in order, each as a subtest.
type ReconcilerTestSuite []ReconcilerTestCase

// Run runs the cases. If cases have a focus, it runs only those and fails the suite.
func (ts ReconcilerTestSuite) Run(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory, opts ...RunOption) {
	t.Helper()
	suite := suite{}
	for _, tc := range ts {
		suite.add(tc.Name, tc.Focus, func(t *testing.T) {
			t.Helper()
			tc.Run(t, scheme, factory, opts...)
		})
	}
	suite.run(t)
}
