// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// In a controller, an event for a status write repeats the status. An event for a failure is needed.
func TestResourceReconciler_StatusEvents(t *testing.T) {
	duck := func(w *world, asked bool) func(managed bool) error {
		r := &reconcilers.ResourceReconciler[*fixture.Duck]{
			Type: fixture.NewDuck("", ""), Config: w.Config, StatusEvents: asked,
			Reconciler: &reconcilers.SyncReconciler[*fixture.Duck]{Sync: func(_ context.Context, duck *fixture.Duck) error {
				duck.Status.Fields = map[string]string{"a": "b"}
				return nil
			}},
		}
		return either(r.Reconcile, r.ReconcileManaged)
	}
	typed := func(w *world, asked bool) func(managed bool) error {
		r := &resourceReconciler{Config: w.Config, StatusEvents: asked, Reconciler: nothing()}
		return either(r.Reconcile, r.ReconcileManaged)
	}
	for name, kind := range map[string]struct {
		build         func(w *world, asked bool) func(managed bool) error
		write         string
		event, failed string
	}{
		"typed": {
			typed, "update Resource/status", "event default/test Normal StatusUpdated",
			"event default/test Warning StatusUpdateFailed",
		},
		"duck": {
			duck, "patch Resource/status", "event default/test Normal StatusPatched",
			"event default/test Warning StatusPatchFailed",
		},
	} {
		for _, tc := range []struct {
			name           string
			asked, managed bool
			want           int
		}{
			{"controller", false, true, 0},
			{"controller, asked for", true, true, 1},
			{"called directly", false, false, 1},
			{"called directly, asked for", true, false, 1},
		} {
			t.Run(name+"/"+tc.name, func(t *testing.T) {
				w := newWorld(t, newResource())
				reconcile := kind.build(w, tc.asked)
				w.Fail(kind.write, errTest)
				wantErr(t, errTest, reconcile(tc.managed))
				equal(t, "events of the failure", 1, w.Count(kind.failed))
				w.Heal()
				w.Trace()

				wantErr(t, nil, reconcile(tc.managed))
				equal(t, "writes", 1, w.Count(kind.write))
				equal(t, "events", tc.want, w.Count(kind.event))
			})
		}
	}
}

// either calls a root reconciler for the test resource, like a test or like a controller.
func either(
	direct, managed func(context.Context, reconcilers.Request) (reconcilers.Result, error),
) func(asManaged bool) error {
	return func(asManaged bool) error {
		call := direct
		if asManaged {
			call = managed
		}
		_, err := call(context.Background(), testRequest)
		return err
	}
}
