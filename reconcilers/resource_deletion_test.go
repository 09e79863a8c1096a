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
		// Nobody reads the status of a resource that is going away.
		"status is left alone": {
			Request: testRequest, GivenObjects: given, StatusSubResourceTypes: hasStatus, Metadata: reconciling(
				setField(reconcilers.Result{}, nil),
			),
		},
		// SyncStatusDuringFinalization asks for it.
		"status is written on request": {
			Request: testRequest, GivenObjects: given, StatusSubResourceTypes: hasStatus,
			Metadata: changes(func(r *resourceReconciler) {
				r.SyncStatusDuringFinalization, r.Reconciler = true, setField(reconcilers.Result{}, nil)
			}),
			ExpectStatusUpdates: objects{newResource(settled, ran)}, ExpectEvents: statusUpdated,
		},
		// The resource is gone from the server already, only the cache has not noticed.
		"without finalizers": {
			Request: testRequest, Metadata: reconciling(never(t)),
			WithReactors: []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
				return action.Matches("get", "Resource"), newResource(terminating, settled), nil
			}},
		},
	}.Run(t, scheme, resourceFactory)
}
