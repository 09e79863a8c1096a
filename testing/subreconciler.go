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

// SubReconcilerTestCase calls one sub reconciler with a resource, as a root reconciler does. The changes of the
// resource and the side effects must be the expected ones; those that the case does not mention must not occur. Stashed
// values that the case does not mention are ignored.
//
// A sub reconciler does not write the status of its resource: expect changes of the status in ExpectResource.
//
// The fields of a case are copied before they are used, so that cases can share objects.
type SubReconcilerTestCase[Type client.Object] struct {
	// Name of the case. In [SubReconcilerTests] it is the key of the case.
	Name string
	// Focus skips all cases of the suite without a focus, to work on some. The suite fails as long as a case has a focus.
	Focus bool
	// Skip skips this case.
	Skip bool
	// Metadata is for the author: values for the factory and the hooks. It is never nil for them.
	Metadata map[string]interface{}

	// Resource is the resource for the sub reconciler. It is also a given object, for the client and for the APIReader.
	// Its resource version defaults to 999. Required.
	Resource Type
	// Parent is the resource if Resource is nil.
	//
	// Deprecated: use Resource.
	Parent Type
	// GivenStashedValues are in the stash before the sub reconciler is called.
	GivenStashedValues map[stash.Key]interface{}
	// WithClientBuilder configures the fake client, for example with an index. Optional.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// WithReactors observe and change calls of the client, in their order, see [ReactionFunc].
	WithReactors []ReactionFunc
	// StatusSubResourceTypes are the kinds with a status subresource. Status writes of other kinds fail.
	StatusSubResourceTypes []client.Object
	// Realistic brings the fake closer to a real API, see [ExpectConfig]. Defaults to false.
	Realistic bool
	// GivenObjects exist before the sub reconciler is called.
	GivenObjects []client.Object
	// APIGivenObjects exist for the APIReader. It sees none of the GivenObjects unless Realistic or on a cluster.
	APIGivenObjects []client.Object
	// GivenAPIResources are what the discovery client and the REST mapper know.
	GivenAPIResources []*metav1.APIResourceList
	// GivenTracks are tracked before the sub reconciler is called.
	GivenTracks []TrackRequest

	// ExpectResource is the resource after the call. Defaults to Resource: no change. After a patch of the finalizers, the
	// resource version can be omitted, or be the one before the patch.
	ExpectResource Type
	// ExpectParent is the resource after the call if ExpectResource is nil.
	//
	// Deprecated: use ExpectResource.
	ExpectParent Type
	// ExpectStashedValues are values of the stash after the call. The stash may have others. Nil stands for nil or for no
	// value.
	ExpectStashedValues map[stash.Key]interface{}
	// VerifyStashedValue compares the values of the stash. Defaults to a comparison by Differ.
	VerifyStashedValue VerifyStashedValueFunc
	// ExpectTracks are the references that the sub reconciler tracks, in order.
	ExpectTracks []TrackRequest
	// ExpectEvents are the events that the sub reconciler records, in order.
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
	// ExpectSubResources are the writes to subresources other than the status, in order. Nil asserts nothing, unless the
	// case is Realistic.
	ExpectSubResources []SubResourceRef
	// ExpectWiring is what the sub reconciler asks of a manager when it is set up. Nil asserts nothing. It needs a further
	// call of the factory.
	ExpectWiring *Wiring
	// AdditionalConfigs are further configs, by name. The sub reconciler gets them by
	// [reconcilers.RetrieveAdditionalConfigs].
	AdditionalConfigs map[string]ExpectConfig

	// ShouldErr expects the sub reconciler to return an error. ExpectedResult is then not compared.
	ShouldErr bool
	// ShouldPanic expects the sub reconciler to panic.
	ShouldPanic bool
	// ExpectedResult is the result that the sub reconciler returns.
	ExpectedResult reconcilers.Result
	// Verify makes further assertions about the result and the error of the sub reconciler. Optional.
	Verify VerifyFunc

	// Prepare is called first. It may change any field of tc, and returns the context of the run. Optional.
	Prepare func(t *testing.T, ctx context.Context, tc *SubReconcilerTestCase[Type]) (context.Context, error)
	// CleanUp is called last, also if the case fails, but not after a Prepare that fails. Optional.
	CleanUp func(t *testing.T, ctx context.Context, tc *SubReconcilerTestCase[Type]) error
	// Now is the time for the sub reconciler, see [trueup.dev/time]. Defaults to the current time.
	Now time.Time
	// Differ compares expectations with observations. Defaults to [DefaultDiffer].
	Differ Differ

	// AdditionalReconciles are cases to run afterwards, in order, with the same sub reconciler, to test what it keeps
	// between calls. Each has its own configs and its own given objects. They run as subtests; a Focus is not allowed.
	AdditionalReconciles []SubReconcilerTestCase[Type]
}

// VerifyStashedValueFunc compares a value of the stash with the expected one. Actual is nil if the stash has no value.
type VerifyStashedValueFunc func(t *testing.T, key stash.Key, expected, actual interface{})

// SubReconcilerFactory returns the sub reconciler to test. The context of its calls has the configs, too.
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

// SubReconcilerTests are cases by name. They run in any order, each as a subtest.
type SubReconcilerTests[Type client.Object] map[string]SubReconcilerTestCase[Type]

// Run runs the cases. If cases have a focus, it runs only those and fails the suite.
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

// SubReconcilerTestSuite is a list of cases. They run in order, each as a subtest.
type SubReconcilerTestSuite[Type client.Object] []SubReconcilerTestCase[Type]

// Run runs the cases. If cases have a focus, it runs only those and fails the suite.
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
