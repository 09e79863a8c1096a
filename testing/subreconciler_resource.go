// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/literal"
)

// resources returns copies of the resource to reconcile and of the one that is expected.
func (tc *SubReconcilerTestCase[T]) resources(t *testing.T) (resource, expected T) {
	t.Helper()
	if isNil(tc.Resource) {
		tc.Resource = tc.Parent
	}
	if isNil(tc.Resource) {
		t.Fatal("Resource field is required")
	}
	if isNil(tc.ExpectResource) {
		tc.ExpectResource = tc.ExpectParent
	}
	if isNil(tc.ExpectResource) {
		tc.ExpectResource = tc.Resource
	}
	return copyAs(t, "Resource", tc.Resource), copyAs(t, "ExpectResource", tc.ExpectResource)
}

// copyAs returns a deep copy. It is of another Go type than the object where that is how the object unwraps itself.
func copyAs[T client.Object](t *testing.T, field string, obj T) T {
	t.Helper()
	resource, ok := obj.DeepCopyObject().(T)
	if !ok {
		t.Fatalf(
			"%s is a %T, and its deep copy a %T: the copy must be of the type parameter of the case", field, obj,
			obj.DeepCopyObject(),
		)
	}
	return resource
}

// storedMetadata is what an API adds to the metadata of an object. A resource has it when a root reconciler hands it
// on, so a table can leave it out.
type storedMetadata struct {
	resourceVersion string
	uid             types.UID
	generation      int64
	created         metav1.Time
}

// readMetadata returns the metadata of a resource as it is stored.
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

// complete fills in what objects have nothing for.
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

// notIn returns the metadata without the uid and the generation of an object that has its own: who writes them down
// reads them, too.
func (m storedMetadata) notIn(obj client.Object) storedMetadata {
	if obj.GetUID() != "" {
		m.uid = ""
	}
	if obj.GetGeneration() != 0 {
		m.generation = 0
	}
	return m
}

// assertResource compares the resource to the expected one, which is complete. What is in metadata can be left out of
// the expected one, and so can the version that a patch of the finalizers has given to the resource; versionGiven tells
// whether the test has one.
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
