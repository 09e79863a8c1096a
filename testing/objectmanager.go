// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
)

var _ reconcilers.ObjectManager[client.Object] = (*StubObjectManager[client.Object])(nil)

// StubObjectManager is an object manager for tests of a reconciler. It only creates, updates and deletes objects, so
// that a test can expect these calls. It has no options, emits no events, tracks nothing, sets no finalizer and logs
// nothing.
//
// An update copies labels, annotations and all set fields of the desired object to the actual object, except for the
// status, the API version, the kind and other metadata. It is sent only if that changes the actual object.
type StubObjectManager[Type client.Object] struct{}

// SetupWithManager does nothing.
func (*StubObjectManager[T]) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

// Manage brings the actual object into the desired state with the client of the config on the context, and returns it.
// See [reconcilers.ObjectManager].
func (*StubObjectManager[T]) Manage(ctx context.Context, _ client.Object, actual, desired T) (T, error) {
	var none T
	c := reconcilers.RetrieveConfigOrDie(ctx)
	missing := nilcheck.IsNil(actual) || actual.GetCreationTimestamp().Time.IsZero()

	switch {
	case nilcheck.IsNil(desired) && (missing || actual.GetDeletionTimestamp() != nil):
		return none, nil
	case nilcheck.IsNil(desired):
		return none, c.Delete(ctx, actual)
	case missing:
		created := desired.DeepCopyObject().(T)
		if err := c.Create(ctx, created); err != nil {
			return none, err
		}
		return created, nil
	}

	updated, err := overlaid(actual, desired)
	if err != nil {
		return none, err
	}
	if equality.Semantic.DeepEqual(actual, updated) {
		return actual, nil
	}
	if err := c.Update(ctx, updated); err != nil {
		return none, err
	}
	return updated, nil
}

// overlaid returns a copy of the actual object with the fields of the desired object.
func overlaid[T client.Object](actual, desired T) (T, error) {
	var none T
	content, err := contentOf(actual)
	if err != nil {
		return none, err
	}
	desiredContent, err := contentOf(desired)
	if err != nil {
		return none, err
	}
	for field, value := range desiredContent {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			content[field] = value
		}
	}

	result := reflect.New(reflect.TypeOf(actual).Elem()).Interface().(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, result); err != nil {
		return none, fmt.Errorf("unable to update %T: %w", actual, err)
	}
	result.SetLabels(maps.Clone(desired.GetLabels()))
	result.SetAnnotations(maps.Clone(desired.GetAnnotations()))
	return result, nil
}

func contentOf(obj client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, fmt.Errorf("unable to read the fields of %T: %w", obj, err)
	}
	return content, nil
}
