// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

func TestResourceReconciler_Deletion(t *testing.T) {
	fetched := []string{"get Resource default/test"}
	written := append(slices.Clone(fetched), "update Resource/status default/test", "event default/test Normal StatusUpdated: Updated status")
	hold := finalizer("hold.example.com/on")
	for name, tc := range map[string]struct {
		reason     string
		sync       bool
		reconciler func(t *testing.T) reconcilers.SubReconciler[*fixture.Resource]
		gone       bool
		want       []string
	}{
		"status is left alone": {
			reason: "nobody reads the status of a resource that is going away",
			reconciler: func(*testing.T) reconcilers.SubReconciler[*fixture.Resource] {
				return setField(reconcilers.Result{}, nil)
			},
			want: fetched,
		},
		"status is written on request": {
			reason: "SyncStatusDuringFinalization asks for it",
			sync:   true,
			reconciler: func(*testing.T) reconcilers.SubReconciler[*fixture.Resource] {
				return setField(reconcilers.Result{}, nil)
			},
			want: written,
		},
		"without finalizers": {
			reason:     "the resource is gone from the server already, only the cache has not noticed",
			gone:       true,
			reconciler: func(t *testing.T) reconcilers.SubReconciler[*fixture.Resource] { return never(t) },
			want:       fetched,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(hold, terminating, settled))
			if tc.gone {
				w.Fetched = func(obj client.Object) { obj.SetFinalizers(nil) }
			}
			r := &resourceReconciler{Config: w.Config, SyncStatusDuringFinalization: tc.sync, Reconciler: tc.reconciler(t)}
			result, err := r.Reconcile(context.Background(), testRequest)
			wantErr(t, nil, err)
			equal(t, "result", reconcilers.Result{}, result)
			equal(t, tc.reason, tc.want, w.Trace())
		})
	}
}
