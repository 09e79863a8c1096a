// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	"trueup.dev/testing/internal/literal"
	"trueup.dev/validation"
)

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

// onResource returns the context that a root reconciler passes to its sub reconcilers.
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
