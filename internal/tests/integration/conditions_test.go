// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/apis"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// The observed generation of every condition follows the generation of the resource, also if the status of the
// condition does not change, with one write of the status for each generation.
func TestConditionsHaveTheObservedGeneration(t *testing.T) {
	e := newEnv(t)
	conditions := apis.NewLivingConditionSet("Published")
	var passes atomic.Int64
	e.start(root(&reconcilers.SyncReconciler[*fixture.Resource]{
		Sync: func(ctx context.Context, r *fixture.Resource) error {
			conditions.ManageWithContext(ctx, &r.Status).MarkTrue("Published", "Published", "")
			passes.Add(1)
			return nil
		},
	}))

	resource := newResource("it", nil)
	e.Add(resource)
	wrote := []string{}
	for generation := int64(1); generation <= 3; generation++ {
		if generation > 1 {
			change(e, resource, func(r *fixture.Resource) {
				r.Spec.Fields = map[string]string{"generation": fmt.Sprint(generation)}
			})
		}
		want := map[string]int64{"Published": generation, "Ready": generation}
		until(e, resource, func(r *fixture.Resource) error {
			got := map[string]int64{}
			for _, condition := range r.Status.Conditions {
				got[condition.Type] = condition.ObservedGeneration
			}
			if diff := cmp.Diff(want, got); diff != "" || r.Generation != generation {
				return fmt.Errorf("observed generations of conditions at generation %d (-want +got):\n%s", r.Generation, diff)
			}
			return nil
		})
		for range 3 {
			before := passes.Load()
			e.touch(resource)
			e.Eventually(func() error {
				if passes.Load() == before {
					return fmt.Errorf("no reconcile for a change of the resource")
				}
				return nil
			})
		}
		wrote = append(wrote, "PUT")
		if diff := cmp.Diff(wrote, e.traffic.of("resources/status")); diff != "" {
			t.Errorf("writes of the status at generation %d (-want +got):\n%s", generation, diff)
		}
	}
}
