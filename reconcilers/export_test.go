// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/guard"
)

// Names of the index by owner.
var (
	OwnerIndexField = ownerIndexField
	ControllerUID   = controllerUID
)

// Describe exports describe for tests.
var Describe = describe

// ReconcileManaged calls Reconcile like a controller.
func (r *ResourceReconciler[T]) ReconcileManaged(ctx context.Context, req Request) (Result, error) {
	return r.reconcile(ctx, req, true)
}

// ReconcileManaged calls Reconcile like a controller.
func (r *AggregateReconciler[T]) ReconcileManaged(ctx context.Context, req Request) (Result, error) {
	return r.reconcile(ctx, req, true)
}

// WatchesWithForm returns how many watches of a kind watch the form of an object, and how many there are.
func (r *ResourceReconciler[T]) WatchesWithForm(obj client.Object) (withForm, all int) {
	gvk, err := r.Config.GroupVersionKindFor(obj)
	if err != nil {
		panic(err)
	}
	watches := r.watched.forms.Load().watches[watchedKind{r.Config.cache, gvk.GroupKind()}]
	for _, watch := range watches {
		if !watch.lacks(guard.NewForm(gvk, obj)) {
			withForm++
		}
	}
	return withForm, len(watches)
}

// MoveFields exports moveFields for tests.
func MoveFields(entries []metav1.ManagedFieldsEntry, updates, applies []string, owner string) (
	moved []metav1.ManagedFieldsEntry, from []string, err error,
) {
	return moveFields(entries, formerOwners{updates: sets.New(updates...), applies: sets.New(applies...)}, owner)
}
