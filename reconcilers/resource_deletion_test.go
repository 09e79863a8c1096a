// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

func TestResourceReconciler_Deletion(t *testing.T) {
	given := objects{newResource(finalizer("hold.example.com/on"), terminating, settled)}
	rtesting.ReconcilerTests{
		// By default, the status of a resource that is being deleted is not written.
		"status is not written": {
			Request: testRequest, GivenObjects: given, StatusSubResourceTypes: hasStatus, Metadata: reconciling(
				setField(reconcilers.Result{}, nil),
			),
		},
		// SyncStatusDuringFinalization writes it.
		"status is written on request": {
			Request: testRequest, GivenObjects: given, StatusSubResourceTypes: hasStatus,
			Metadata: changes(func(r *resourceReconciler) {
				r.SyncStatusDuringFinalization, r.Reconciler = true, setField(reconcilers.Result{}, nil)
			}),
			ExpectStatusUpdates: objects{newResource(settled, ran)}, ExpectEvents: statusUpdated,
		},
		// The server has already deleted the resource, but the cache still has it.
		"without finalizers": {
			Request: testRequest, Metadata: reconciling(never(t)),
			WithReactors: []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
				return action.Matches("get", "Resource"), newResource(terminating, settled), nil
			}},
		},
	}.Run(t, scheme, resourceFactory)
}
