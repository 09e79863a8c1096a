// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/reconcilers"
	"trueup.dev/stash"
)

// SubReconcilerTestCase calls one sub reconciler with a resource, as a root reconciler would do. What the sub
// reconciler does to the resource, to the stash and by its config must be what is expected: nothing, for all that the
// case does not mention but the stash.
//
// The status of the resource cannot be written by a sub reconciler: expect changes of it in ExpectResource.
//
// The fields of a case are copied before they are used, so that cases can share objects.
type SubReconcilerTestCase[Type client.Object] struct {
	// Name of the case. In [SubReconcilerTests] it is the key of the case.
	Name string
	// Focus leaves out all cases of the suite that have no focus, to work on some. The suite fails as long as a case has
	// it.
	Focus bool
	// Skip leaves out this case.
	Skip bool
	// Metadata is for the author: values for the factory and the hooks. It is never nil for them.
	Metadata map[string]interface{}

	// Resource is what the sub reconciler is called with. It is a given object too, and a given object for the APIReader.
	// Its resource version defaults to
	// 999. Required.
	Resource Type
	// Parent is the resource if Resource is nil.
	//
	// Deprecated: use Resource.
	Parent Type
	// GivenStashedValues are in the stash before the sub reconciler is called.
	GivenStashedValues map[stash.Key]interface{}
	// WithClientBuilder changes how the fake client is built: with an index, for example. Optional.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// WithReactors see and change calls of the client, see [ReactionFunc]. The first is called first.
	WithReactors []ReactionFunc
	// StatusSubResourceTypes are the kinds that have a status sub resource. Others do not accept writes of their status.
	StatusSubResourceTypes []client.Object
	// Realistic has the fake do more of what a real API does, see [ExpectConfig]. Defaults to false.
	Realistic bool
	// GivenObjects are there before the sub reconciler is called.
	GivenObjects []client.Object
	// APIGivenObjects are there for the APIReader, which sees none of the GivenObjects.
	APIGivenObjects []client.Object
	// GivenAPIResources are what the discovery client and the REST mapper know.
	GivenAPIResources []*metav1.APIResourceList
	// GivenTracks are tracked before the sub reconciler is called.
	GivenTracks []TrackRequest

	// ExpectResource is the resource after the call. Defaults to Resource: no change. The resource version after a patch
	// of its finalizers can be left out, or be the one before.
	ExpectResource Type
	// ExpectParent is the resource after the call if ExpectResource is nil.
	//
	// Deprecated: use ExpectResource.
	ExpectParent Type
	// ExpectStashedValues are values that are in the stash after the call. Others may be there too. Nil is a value that is
	// nil or missing.
	ExpectStashedValues map[stash.Key]interface{}
	// VerifyStashedValue compares the values of the stash. Defaults to a comparison by Differ.
	VerifyStashedValue VerifyStashedValueFunc
	// ExpectTracks are the references that the sub reconciler tracks, in order.
	ExpectTracks []TrackRequest
	// ExpectEvents are the events that the sub reconciler records, in order.
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
	// ExpectSubResources are the writes to sub resources other than the status, in order. Nil asserts nothing, unless the
	// case is Realistic.
	ExpectSubResources []SubResourceRef
	// ExpectWiring is what the sub reconciler asks of a manager when it is set up. Nil asserts nothing. The factory is
	// called once more for it.
	ExpectWiring *Wiring
	// AdditionalConfigs are further configs, by name. The sub reconciler gets them by
	// [reconcilers.RetrieveAdditionalConfigs].
	AdditionalConfigs map[string]ExpectConfig

	// ShouldErr is whether the sub reconciler returns an error. ExpectedResult is then not compared.
	ShouldErr bool
	// ShouldPanic is whether the sub reconciler panics.
	ShouldPanic bool
	// ExpectedResult is what the sub reconciler returns.
	ExpectedResult reconcilers.Result
	// Verify makes further assertions about what the sub reconciler returns. Optional.
	Verify VerifyFunc

	// Prepare is called first. It may change any field of tc, and returns the context for all that follows. Optional.
	Prepare func(t *testing.T, ctx context.Context, tc *SubReconcilerTestCase[Type]) (context.Context, error)
	// CleanUp is called last, however the case ends, but not after a Prepare that has failed. Optional.
	CleanUp func(t *testing.T, ctx context.Context, tc *SubReconcilerTestCase[Type]) error
	// Now is the time for the sub reconciler, see [trueup.dev/time]. Defaults to the current time.
	Now time.Time
	// Differ compares what is expected with what is observed. Defaults to [DefaultDiffer].
	Differ Differ

	// AdditionalReconciles are cases to run afterwards, in order, with the same sub reconciler: for what it remembers from
	// call to call. Each has its own configs and begins with what it is given. They run as sub tests; a Focus is not
	// allowed.
	AdditionalReconciles []SubReconcilerTestCase[Type]
}

// VerifyStashedValueFunc compares a value of the stash with the expected one. Actual is nil when there is none.
type VerifyStashedValueFunc func(t *testing.T, key stash.Key, expected, actual interface{})

// SubReconcilerFactory returns the sub reconciler to test. The configs are on the context too when it is called.
type SubReconcilerFactory[Type client.Object] func(
	t *testing.T, rtc *SubReconcilerTestCase[Type], c reconcilers.Config,
) reconcilers.SubReconciler[Type]

// expectConfig returns the main config of the case.
func (tc *SubReconcilerTestCase[T]) expectConfig(scheme *runtime.Scheme) *ExpectConfig {
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
		ExpectSubResources:      tc.ExpectSubResources,
	}
}

// SubReconcilerTests are cases by name. They run in any order, each as a sub test.
type SubReconcilerTests[Type client.Object] map[string]SubReconcilerTestCase[Type]

// Run runs the cases, or, if there are any, only those with a focus: then the suite fails.
func (rt SubReconcilerTests[T]) Run(
	t *testing.T, scheme *runtime.Scheme, factory SubReconcilerFactory[T], opts ...RunOption,
) {
	t.Helper()
	suite := make(SubReconcilerTestSuite[T], 0, len(rt))
	for name, tc := range rt {
		tc.Name = name
		suite = append(suite, tc)
	}
	suite.Run(t, scheme, factory, opts...)
}

// SubReconcilerTestSuite is a list of cases. They run in order, each as a sub test.
type SubReconcilerTestSuite[Type client.Object] []SubReconcilerTestCase[Type]

// Run runs the cases, or, if there are any, only those with a focus: then the suite fails.
func (ts SubReconcilerTestSuite[T]) Run(
	t *testing.T, scheme *runtime.Scheme, factory SubReconcilerFactory[T], opts ...RunOption,
) {
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
