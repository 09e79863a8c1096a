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
	"trueup.dev/stash"
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

var _ reconcilers.SubReconciler[client.Object] = (*ObjectManagerReconcilerTestHarness[client.Object])(nil)

// ObjectManagerReconcilerTestHarness is a subreconciler that calls an object manager, so that object managers can be
// tested with [SubReconcilerTestCase]. The Resource of a case is the reconciled resource. The case stashes the actual
// and the desired object, nil for none:
//
//	GivenStashedValues: map[stash.Key]any{
//		rtesting.ObjectManagerReconcilerTestHarnessActualStasher[*corev1.ConfigMap]().Key():  nil,
//		rtesting.ObjectManagerReconcilerTestHarnessDesiredStasher[*corev1.ConfigMap]().Key(): desired,
//	},
//
// The harness stashes the object that the manager returns under the key of
// [ObjectManagerReconcilerTestHarnessResultStasher]. It is nil if the manager fails. The actual object need not be
// among the GivenObjects.
type ObjectManagerReconcilerTestHarness[T client.Object] struct {
	// ObjectManager is the manager to test. Required.
	ObjectManager reconcilers.ObjectManager[T]
}

// SetupWithManager sets up the object manager.
func (r *ObjectManagerReconcilerTestHarness[T]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	return r.ObjectManager.SetupWithManager(ctx, mgr, bldr)
}

// Reconcile calls the object manager with the stashed objects, and returns its error. It panics if the stash lacks the
// actual or the desired object.
func (r *ObjectManagerReconcilerTestHarness[T]) Reconcile(
	ctx context.Context, resource client.Object,
) (reconcilers.Result, error) {
	actual := ObjectManagerReconcilerTestHarnessActualStasher[T]().RetrieveOrDie(ctx)
	desired := ObjectManagerReconcilerTestHarnessDesiredStasher[T]().RetrieveOrDie(ctx)
	if !nilcheck.IsNil(actual) {
		config := reconcilers.RetrieveConfigOrDie(ctx)
		c, ok := config.Client.(TestClient)
		if !ok {
			return reconcilers.Result{}, fmt.Errorf(
				"unable to add the actual object: the client of the config is a %T, not a TestClient", config.Client,
			)
		}
		c.AddGiven(actual)
	}
	result, err := r.ObjectManager.Manage(ctx, resource, actual, desired)
	ObjectManagerReconcilerTestHarnessResultStasher[T]().Store(ctx, result)
	return reconcilers.Result{}, err
}

// ObjectManagerReconcilerTestHarnessActualStasher stashes the object that exists, for
// [ObjectManagerReconcilerTestHarness].
func ObjectManagerReconcilerTestHarnessActualStasher[T client.Object]() stash.Stasher[T] {
	return stash.New[T]("trueup.dev/testing:objectManagerHarness:actual")
}

// ObjectManagerReconcilerTestHarnessDesiredStasher stashes the object that should exist, for
// [ObjectManagerReconcilerTestHarness].
func ObjectManagerReconcilerTestHarnessDesiredStasher[T client.Object]() stash.Stasher[T] {
	return stash.New[T]("trueup.dev/testing:objectManagerHarness:desired")
}

// ObjectManagerReconcilerTestHarnessResultStasher stashes the object that the object manager has returned, for
// [ObjectManagerReconcilerTestHarness].
func ObjectManagerReconcilerTestHarnessResultStasher[T client.Object]() stash.Stasher[T] {
	return stash.New[T]("trueup.dev/testing:objectManagerHarness:result")
}
