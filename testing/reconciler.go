// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

// ReconcilerTestCase calls a whole reconciler with one request. The reconciler finds the given objects, and what it
// does must be what is expected: nothing, for each kind of side effect that the case does not mention.
//
// The fields of a case are copied before they are used, so that cases can share objects.
type ReconcilerTestCase struct {
	// Name of the case. In [ReconcilerTests] it is the key of the case.
	Name string
	// Focus leaves out all cases of the suite that have no focus, to work on some. The suite fails as long as a case has
	// it.
	Focus bool
	// Skip leaves out this case.
	Skip bool
	// Metadata is for the author: values for the factory and the hooks. It is never nil for them.
	Metadata map[string]interface{}

	// Request is what the reconciler is called with.
	Request reconcilers.Request
	// Key is the object to reconcile if Request has none.
	//
	// Deprecated: use Request.
	Key types.NamespacedName
	// WithReactors see and change calls of the client, see [ReactionFunc]. The first is called first.
	WithReactors []ReactionFunc
	// WithClientBuilder changes how the fake client is built: with an index, for example. Optional.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// StatusSubResourceTypes are the kinds that have a status sub resource. Others do not accept writes of their status.
	StatusSubResourceTypes []client.Object
	// Realistic has the fake do more of what a real API does, see [ExpectConfig]. Defaults to false.
	Realistic bool
	// GivenObjects are there before the reconciler is called.
	GivenObjects []client.Object
	// APIGivenObjects are there for the APIReader, which sees none of the GivenObjects.
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
	// ExpectCreates are the objects created, in order, as they were before the API gave them a name, a uid, and so on.
	ExpectCreates []client.Object
	// ExpectUpdates are the objects updated, in order.
	ExpectUpdates []client.Object
	// ExpectPatches are the patches, in order.
	ExpectPatches []PatchRef
	// ExpectDeletes are the objects deleted, in order.
	ExpectDeletes []DeleteRef
	// ExpectDeleteCollections are the collections deleted, in order.
	ExpectDeleteCollections []DeleteCollectionRef
	// ExpectStatusUpdates are the objects whose status was updated, in order.
	ExpectStatusUpdates []client.Object
	// ExpectStatusPatches are the patches of a status, in order.
	ExpectStatusPatches []PatchRef
	// ExpectStatusApplies are the apply calls for a status, in order.
	ExpectStatusApplies []ApplyRef
	// ExpectSubResources are the writes to sub resources other than the status, in order. Nil asserts nothing, unless the
	// case is Realistic.
	ExpectSubResources []SubResourceRef
	// ExpectWiring is what the reconciler asks of a manager when it is set up. Nil asserts nothing. The factory is called
	// once more for it.
	ExpectWiring *Wiring
	// AdditionalConfigs are further configs, by name. The reconciler gets them by [reconcilers.RetrieveAdditionalConfigs].
	AdditionalConfigs map[string]ExpectConfig

	// ShouldErr is whether the reconciler returns an error. ExpectedResult is then not compared.
	ShouldErr bool
	// ExpectedResult is what the reconciler returns.
	ExpectedResult reconcilers.Result
	// Verify makes further assertions about what the reconciler returns. Optional.
	Verify VerifyFunc

	// Prepare is called first. It may change any field of tc, and returns the context for all that follows. Optional.
	Prepare func(t *testing.T, ctx context.Context, tc *ReconcilerTestCase) (context.Context, error)
	// CleanUp is called last, however the case ends, but not after a Prepare that has failed. Optional.
	CleanUp func(t *testing.T, ctx context.Context, tc *ReconcilerTestCase) error
	// Now is the time for the reconciler, see [trueup.dev/time]. Defaults to the current time.
	Now time.Time
	// Differ compares what is expected with what is observed. Defaults to [DefaultDiffer].
	Differ Differ
}

// ReconcilerFactory returns the reconciler to test. It must use c for all that it does.
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
	if tc.ExpectWiring != nil {
		wiring, err := recordReconciler(
			ctx, scheme, func(c reconcilers.Config) any { return factory(t, tc, c) }, tc.AdditionalConfigs, tc.GivenObjects,
		)
		assertWiring(t, tc.ExpectWiring, wiring, err)
	}
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

// ReconcilerTests are cases by name. They run in any order, each as a sub test.
type ReconcilerTests map[string]ReconcilerTestCase

// Run runs the cases, or, if there are any, only those with a focus: then the suite fails.
func (rt ReconcilerTests) Run(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory, opts ...RunOption) {
	t.Helper()
	suite := make(ReconcilerTestSuite, 0, len(rt))
	for name, tc := range rt {
		tc.Name = name
		suite = append(suite, tc)
	}
	suite.Run(t, scheme, factory, opts...)
}

// ReconcilerTestSuite is a list of cases. They run in order, each as a sub test.
type ReconcilerTestSuite []ReconcilerTestCase

// Run runs the cases, or, if there are any, only those with a focus: then the suite fails.
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
