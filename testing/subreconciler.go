// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	"trueup.dev/testing/internal/literal"
	"trueup.dev/validation"
)

// SubReconcilerTestCase calls one subreconciler with a resource, as a root reconciler does. The changes of the
// resource and the side effects must be the expected ones; those that the case does not mention must not occur. Stashed
// values that the case does not mention are ignored.
//
// A subreconciler does not write the status of its resource: expect changes of the status in ExpectResource.
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

	// Resource is the resource for the subreconciler. It is also a given object, for the client and for the APIReader.
	// Its resource version defaults to 999. Required.
	Resource Type
	// Parent is the resource if Resource is nil.
	//
	// Deprecated: use Resource.
	Parent Type
	// GivenStashedValues are in the stash before the subreconciler is called.
	GivenStashedValues map[stash.Key]interface{}
	// WithClientBuilder configures the fake client, for example with an index. Optional.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// WithReactors observe and change calls of the client, in their order, see [ReactionFunc].
	WithReactors []ReactionFunc
	// StatusSubResourceTypes are the kinds with a status subresource. Status writes of other kinds fail.
	StatusSubResourceTypes []client.Object
	// Realistic brings the fake closer to a real API, see [ExpectConfig]. Defaults to false.
	Realistic bool
	// GivenObjects exist before the subreconciler is called.
	GivenObjects []client.Object
	// APIGivenObjects exist for the APIReader. It sees none of the GivenObjects unless Realistic or on a cluster.
	APIGivenObjects []client.Object
	// GivenAPIResources are what the discovery client and the REST mapper know.
	GivenAPIResources []*metav1.APIResourceList
	// GivenTracks are tracked before the subreconciler is called.
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
	// ExpectTracks are the references that the subreconciler tracks, in order.
	ExpectTracks []TrackRequest
	// ExpectEvents are the events that the subreconciler records, in order.
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
	// ExpectWiring is what the subreconciler asks of a manager when it is set up. Nil asserts nothing. It needs a further
	// call of the factory.
	ExpectWiring *Wiring
	// AdditionalConfigs are further configs, by name. The subreconciler gets them by
	// [reconcilers.RetrieveAdditionalConfigs].
	AdditionalConfigs map[string]ExpectConfig

	// ShouldErr expects the subreconciler to return an error. ExpectedResult is then not compared.
	ShouldErr bool
	// ShouldPanic expects the subreconciler to panic.
	ShouldPanic bool
	// ExpectedResult is the result that the subreconciler returns.
	ExpectedResult reconcilers.Result
	// Verify makes further assertions about the result and the error of the subreconciler. Optional.
	Verify VerifyFunc

	// Prepare is called first. It may change any field of tc, and returns the context of the run. Optional.
	Prepare func(t *testing.T, ctx context.Context, tc *SubReconcilerTestCase[Type]) (context.Context, error)
	// CleanUp is called last, also if the case fails, but not after a Prepare that fails. Optional.
	CleanUp func(t *testing.T, ctx context.Context, tc *SubReconcilerTestCase[Type]) error
	// Now is the time for the subreconciler, see [trueup.dev/time]. Defaults to the current time.
	Now time.Time
	// Differ compares expectations with observations. Defaults to [DefaultDiffer].
	Differ Differ

	// AdditionalReconciles are cases to run afterwards, in order, with the same subreconciler, to test what it keeps
	// between calls. Each has its own configs and its own given objects. They run as subtests; a Focus is not allowed.
	AdditionalReconciles []SubReconcilerTestCase[Type]
}

// VerifyStashedValueFunc compares a value of the stash with the expected one. Actual is nil if the stash has no value.
type VerifyStashedValueFunc func(t *testing.T, key stash.Key, expected, actual interface{})

// SubReconcilerFactory returns the subreconciler to test. The context of its calls has the configs, too.
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

// resources returns copies of the resource to reconcile and of the expected one.
func (tc *SubReconcilerTestCase[T]) resources(t *testing.T) (resource, expected T) {
	t.Helper()
	if nilcheck.IsNil(tc.Resource) {
		tc.Resource = tc.Parent
	}
	if nilcheck.IsNil(tc.Resource) {
		t.Fatal("Resource field is required")
	}
	if nilcheck.IsNil(tc.ExpectResource) {
		tc.ExpectResource = tc.ExpectParent
	}
	if nilcheck.IsNil(tc.ExpectResource) {
		tc.ExpectResource = tc.Resource
	}
	return copyAs(t, "Resource", tc.Resource), copyAs(t, "ExpectResource", tc.ExpectResource)
}

// copyAs returns a deep copy. The copy of a wrapper is of another Go type than the wrapper.
func copyAs[T client.Object](t *testing.T, field string, obj T) T {
	t.Helper()
	resource, ok := obj.DeepCopyObject().(T)
	if !ok {
		t.Fatalf(
			"%s is a %T, and its deep copy is a %T: the copy must be of the type parameter of the case", field, obj,
			obj.DeepCopyObject(),
		)
	}
	return resource
}

// storedMetadata is the metadata that an API sets. A root reconciler passes a resource with that metadata, so a table
// can omit it.
type storedMetadata struct {
	resourceVersion string
	uid             types.UID
	generation      int64
	created         metav1.Time
}

// readMetadata returns the metadata of the stored resource.
func readMetadata(t *testing.T, ctx context.Context, c reconcilers.Config, resource client.Object) storedMetadata {
	t.Helper()
	stored := resource.DeepCopyObject().(client.Object)
	if err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(resource), stored); err != nil {
		t.Fatalf("unable to read Resource: %s", err)
	}
	return storedMetadata{
		stored.GetResourceVersion(), stored.GetUID(), stored.GetGeneration(), stored.GetCreationTimestamp(),
	}
}

// complete sets the empty fields of objects.
func (m storedMetadata) complete(objs ...client.Object) {
	for _, obj := range objs {
		if obj.GetResourceVersion() == "" {
			obj.SetResourceVersion(m.resourceVersion)
		}
		if obj.GetUID() == "" {
			obj.SetUID(m.uid)
		}
		if obj.GetGeneration() == 0 {
			obj.SetGeneration(m.generation)
		}
		if created := obj.GetCreationTimestamp(); created.IsZero() {
			obj.SetCreationTimestamp(m.created)
		}
	}
}

// withoutFieldsSetBy returns the metadata without the uid and the generation that the object sets: a test that sets
// them also compares them.
func (m storedMetadata) withoutFieldsSetBy(obj client.Object) storedMetadata {
	if obj.GetUID() != "" {
		m.uid = ""
	}
	if obj.GetGeneration() != 0 {
		m.generation = 0
	}
	return m
}

// assertResource compares the resource with the expected one, to which the caller has added the stored metadata.
// versionGiven reports whether the test sets the resource version of the expected one. Otherwise, the version after a
// patch of the finalizers is not compared.
func assertResource(
	t *testing.T, config *ExpectConfig, metadata storedMetadata, expected, observed client.Object, versionGiven bool,
) {
	t.Helper()
	expected, observed = config.normalize(expected, observed)
	diff := config.differ().Resource(config.settleVersion(expected, observed, versionGiven), observed)
	if diff == "" {
		return
	}
	failValue(t, "ExpectResource", diff, "ExpectResource", literal.Compared(observed, func(
		expected, observed client.Object,
	) string {
		expected = expected.DeepCopyObject().(client.Object)
		versionGiven := expected.GetResourceVersion() != ""
		metadata.complete(expected)
		return config.differ().Resource(config.settleVersion(expected, observed, versionGiven), observed)
	}), config.Scheme)
}

// Run runs the case as part of t.
func (tc *SubReconcilerTestCase[T]) Run(
	t *testing.T, scheme *runtime.Scheme, factory SubReconcilerFactory[T], opts ...RunOption,
) {
	t.Helper()
	for _, additional := range tc.AdditionalReconciles {
		if additional.Focus {
			panic("Focus is not allowed for AdditionalReconciles")
		}
	}
	ctx, run := startCase(t, tc.Skip, &tc.Now, &tc.Metadata, &tc.Differ, opts)
	defer run.end(t)
	ctx = stash.WithContext(ctx)
	ctx = prepare(t, ctx, tc, tc.Prepare)
	defer func() {
		t.Helper()
		cleanUp(t, ctx, tc, tc.CleanUp)
	}()
	resource, expected := tc.resources(t)
	// The fake sets this resource version on given objects without one, and no other metadata.
	metadata := storedMetadata{resourceVersion: "999"}
	metadata.complete(resource, expected)
	for key, value := range tc.GivenStashedValues {
		stash.StoreValue(ctx, key, copyValue(value))
	}

	config := tc.expectConfig(scheme)
	config.GivenObjects = slices.Concat(config.GivenObjects, []client.Object{resource})
	config.APIGivenObjects = slices.Concat(config.APIGivenObjects, []client.Object{resource})
	ctx, c := run.open(t, ctx, config, tc.AdditionalConfigs)
	if config.Realistic || run.turn != nil {
		metadata = readMetadata(t, ctx, c, resource)
		metadata.complete(resource, expected)
	}
	requireFactory(t, factory)
	reconciler := factory(t, tc, c)
	requireProduct(t, "sub reconciler", reconciler)
	ctx = onResource(ctx, c, resource)
	ctx = validation.WithRecursive(ctx)
	requireValid(t, ctx, "subreconciler", reconciler)

	result, err := tc.reconcile(t, ctx, reconciler, resource)

	outcome{
		shouldErr: tc.ShouldErr, result: tc.ExpectedResult, verify: tc.Verify, differ: config.differ(),
	}.assert(t, result, err)
	assertResource(
		t, config, metadata.withoutFieldsSetBy(tc.Resource), expected, resource, tc.ExpectResource.GetResourceVersion() != "",
	)
	tc.assertStash(t, ctx, config)
	run.assertExpectations(t)
	if tc.ExpectWiring != nil {
		wiring, err := recordSubReconciler(ctx, scheme, tc.Resource, func(c reconcilers.Config) reconcilers.SubReconciler[T] {
			return factory(t, tc, c)
		}, tc.AdditionalConfigs, config.GivenObjects)
		assertWiring(t, tc.ExpectWiring, wiring, err)
	}

	tc.runAdditional(t, scheme, run, reconciler, opts)
}

// runAdditional runs the additional cases with the reconciler of this case.
func (tc *SubReconcilerTestCase[T]) runAdditional(
	t *testing.T, scheme *runtime.Scheme, run *caseRun, reconciler reconcilers.SubReconciler[T], opts []RunOption,
) {
	t.Helper()
	if len(tc.AdditionalReconciles) > 0 {
		// Release the turn on clusters: each additional case takes one.
		run.close(t)
	}
	again := func(*testing.T, *SubReconcilerTestCase[T], reconcilers.Config) reconcilers.SubReconciler[T] {
		return reconciler
	}
	for _, additional := range tc.AdditionalReconciles {
		t.Run(additional.Name, func(t *testing.T) {
			t.Helper()
			additional.Run(t, scheme, again, append(slices.Clip(opts), sequential)...)
		})
	}
}

// sequential reverts [Parallel].
var sequential = runOption(func(options *runOptions) { options.parallel = false })

// copyValue returns a deep copy of an object, and other values unchanged.
func copyValue(value any) any {
	if obj, ok := value.(runtime.Object); ok && !nilcheck.IsNil(obj) {
		return obj.DeepCopyObject()
	}
	return value
}

// onResource returns the context that a root reconciler passes to its subreconcilers.
func onResource(ctx context.Context, c reconcilers.Config, resource client.Object) context.Context {
	ctx = reconcilers.StashConfig(ctx, c)
	ctx = reconcilers.StashOriginalConfig(ctx, c)
	ctx = reconcilers.StashRequest(ctx, reconcilers.Request{
		NamespacedName: types.NamespacedName{Namespace: resource.GetNamespace(), Name: resource.GetName()},
	})
	ctx = reconcilers.StashOriginalResourceType(ctx, resource.DeepCopyObject().(client.Object))
	return reconcilers.StashResourceType(ctx, resource.DeepCopyObject().(client.Object))
}

func (tc *SubReconcilerTestCase[T]) reconcile(
	t *testing.T, ctx context.Context, reconciler reconcilers.SubReconciler[T], resource T,
) (result reconcilers.Result, err error) {
	t.Helper()
	if !tc.ShouldPanic {
		return reconciler.Reconcile(ctx, resource)
	}
	mustPanic(t, "Reconcile()", func() { result, err = reconciler.Reconcile(ctx, resource) })
	return result, err
}

func (tc *SubReconcilerTestCase[T]) assertStash(t *testing.T, ctx context.Context, config *ExpectConfig) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(tc.ExpectStashedValues)) {
		expected, observed := copyValue(tc.ExpectStashedValues[key]), stash.RetrieveValue(ctx, key)
		if tc.VerifyStashedValue != nil {
			tc.VerifyStashedValue(t, key, expected, observed)
			continue
		}
		if nilcheck.IsNil(expected) && nilcheck.IsNil(observed) {
			continue
		}
		expected, observed = normalizeValues(config, expected, observed)
		if diff := config.differ().StashedValue(expected, observed, key); diff != "" {
			failValue(t, "ExpectStashedValues["+strconv.Quote(string(key))+"]", diff, strconv.Quote(string(key)),
				literal.ComparedValue(observed, func(expected, observed any) string {
					return config.differ().StashedValue(expected, observed, key)
				}), config.Scheme)
		}
	}
}
