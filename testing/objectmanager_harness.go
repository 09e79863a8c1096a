// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

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
// and finds what the manager has returned under the key of [ObjectManagerReconcilerTestHarnessResultStasher], which is
// nil where it has failed. The actual object need not be among the GivenObjects.
type ObjectManagerReconcilerTestHarness[T client.Object] struct {
	// ObjectManager is the manager to test. Required.
	ObjectManager reconcilers.ObjectManager[T]
}

// SetupWithManager sets the object manager up.
func (r *ObjectManagerReconcilerTestHarness[T]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	return r.ObjectManager.SetupWithManager(ctx, mgr, bldr)
}

// Reconcile has the object manager manage the stashed objects. It returns its error, and panics when nothing is stashed
// for the actual or for the desired object.
func (r *ObjectManagerReconcilerTestHarness[T]) Reconcile(
	ctx context.Context, resource client.Object,
) (reconcilers.Result, error) {
	actual := ObjectManagerReconcilerTestHarnessActualStasher[T]().RetrieveOrDie(ctx)
	desired := ObjectManagerReconcilerTestHarnessDesiredStasher[T]().RetrieveOrDie(ctx)
	if !isNil(actual) {
		config := reconcilers.RetrieveConfigOrDie(ctx)
		c, ok := config.Client.(TestClient)
		if !ok {
			return reconcilers.Result{}, fmt.Errorf(
				"unable to add the actual object: the client of the config is %T and no TestClient", config.Client,
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

// ObjectManagerReconcilerTestHarnessResultStasher stashes what the object manager has returned, for
// [ObjectManagerReconcilerTestHarness].
func ObjectManagerReconcilerTestHarnessResultStasher[T client.Object]() stash.Stasher[T] {
	return stash.New[T]("trueup.dev/testing:objectManagerHarness:result")
}
