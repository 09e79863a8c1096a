// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/literal"
)

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
