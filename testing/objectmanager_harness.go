// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
)

var _ reconcilers.SubReconciler[client.Object] = (*ObjectManagerReconcilerTestHarness[client.Object])(nil)

// ObjectManagerReconcilerTestHarness is a sub reconciler that calls an object manager, so that object managers can be
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
