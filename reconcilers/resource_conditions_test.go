// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/apis"
	"trueup.dev/internal/testkit/fixture"
	rtesting "trueup.dev/testing"
)

func TestResourceReconciler_TransitionTimesMoveWithTheStatus(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	later := metav1.NewTime(now).Rfc3339Copy()
	conditions := apis.NewLivingConditionSet("Published")
	manage := func(ctx context.Context, r *fixture.Resource) apis.ConditionManager {
		return conditions.ManageWithContext(ctx, &r.Status)
	}
	// given is the resource before the reconcile. times are the transition times of its conditions afterwards.
	given := func(published, ready metav1.Time, changes ...func(*fixture.Resource)) objects {
		return objects{newResource(append([]func(*fixture.Resource){settled, func(r *fixture.Resource) {
			r.Status.Conditions[0].LastTransitionTime = ready
			r.Status.Conditions = append([]metav1.Condition{{
				Type: "Published", Status: metav1.ConditionUnknown, Reason: "Initializing", LastTransitionTime: published,
			}}, r.Status.Conditions...)
		}}, changes...)...)}
	}
	both := func(status metav1.ConditionStatus, reason, message string) func(*fixture.Resource) {
		return func(r *fixture.Resource) {
			for i := range r.Status.Conditions {
				c := &r.Status.Conditions[i]
				c.Status, c.Reason, c.Message = status, reason, message
			}
		}
	}
	inAll(rtesting.ReconcilerTests{
		// A new status is a transition.
		"another status": {
			Metadata: syncing(func(ctx context.Context, r *fixture.Resource) {
				manage(ctx, r).MarkTrue("Published", "Done", "")
			}),
			ExpectStatusUpdates: given(later, later, both(metav1.ConditionTrue, "Done", ""), func(r *fixture.Resource) {
				r.Status.Conditions[1].Reason = "Ready"
			}),
		},
		// A new reason is not a transition.
		"another reason": {
			Metadata: syncing(func(ctx context.Context, r *fixture.Resource) {
				manage(ctx, r).MarkUnknown("Published", "Waiting", "for it")
			}),
			ExpectStatusUpdates: given(longAgo, longAgo, both(metav1.ConditionUnknown, "Waiting", "for it")),
		},
		// A time that the user sets is ignored.
		"another reason, by hand": {
			Metadata: syncing(func(_ context.Context, r *fixture.Resource) {
				for i := range r.Status.Conditions {
					r.Status.Conditions[i].Message = "changed"
					r.Status.Conditions[i].LastTransitionTime = later
				}
			}),
			ExpectStatusUpdates: given(longAgo, longAgo, both(metav1.ConditionUnknown, "Initializing", "changed")),
		},
		// The user sets the time of a transition.
		"another status, by hand": {
			Metadata: syncing(func(_ context.Context, r *fixture.Resource) {
				r.Status.Conditions[0].Status = metav1.ConditionFalse
				r.Status.Conditions[0].LastTransitionTime = later
			}),
			ExpectStatusUpdates: given(later, longAgo, func(r *fixture.Resource) {
				r.Status.Conditions[0].Status = metav1.ConditionFalse
			}),
		},
		// A new condition has no time to keep.
		"a new condition": {
			Metadata: syncing(func(ctx context.Context, r *fixture.Resource) {
				manage(ctx, r).SetCondition(metav1.Condition{Type: "Added", Status: metav1.ConditionUnknown, Reason: "New"})
			}),
			ExpectStatusUpdates: given(longAgo, longAgo, func(r *fixture.Resource) {
				r.Status.Conditions = append([]metav1.Condition{{
					Type: "Added", Status: metav1.ConditionUnknown, Reason: "New", LastTransitionTime: later,
				}}, r.Status.Conditions...)
			}),
		},
		// A status that changes back during the reconcile is not a transition.
		"changed back": {
			Metadata: syncing(func(ctx context.Context, r *fixture.Resource) {
				manage(ctx, r).MarkFalse("Published", "Oops", "")
				manage(ctx, r).MarkUnknown("Published", "Waiting", "again")
			}),
			ExpectStatusUpdates: given(longAgo, longAgo, both(metav1.ConditionUnknown, "Waiting", "again")),
		},
	}, func(_ string, tc *rtesting.ReconcilerTestCase) {
		tc.Request, tc.GivenObjects, tc.StatusSubResourceTypes = testRequest, given(longAgo, longAgo), hasStatus
		tc.Now, tc.Differ, tc.ExpectEvents = now, transitionTimes{rtesting.DefaultDiffer}, statusUpdated
	}).Run(t, scheme, resourceFactory)
}

// transitionTimes compares the transition times of conditions.
type transitionTimes struct{ rtesting.Differ }

func (transitionTimes) ResourceStatusUpdate(expected, actual client.Object) string {
	return cmp.Diff(expected.(*fixture.Resource).Status, actual.(*fixture.Resource).Status)
}
