// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/apis"
	"trueup.dev/internal/fixture"
	rtime "trueup.dev/time"
)

func TestResourceReconciler_TransitionTimesMoveWithTheStatus(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	later := metav1.NewTime(now).Rfc3339Copy()
	conditions := apis.NewLivingConditionSet("Published")
	manage := func(ctx context.Context, r *fixture.Resource) apis.ConditionManager {
		return conditions.ManageWithContext(ctx, &r.Status)
	}
	type times = map[string]metav1.Time
	for name, tc := range map[string]struct {
		reason string
		change func(ctx context.Context, r *fixture.Resource)
		want   times
	}{
		"another status": {
			reason: "a transition is a transition",
			change: func(ctx context.Context, r *fixture.Resource) { manage(ctx, r).MarkTrue("Published", "Done", "") },
			want:   times{"Published": later, "Ready": later},
		},
		"another reason": {
			reason: "the same status for another reason is no transition",
			change: func(ctx context.Context, r *fixture.Resource) {
				manage(ctx, r).MarkUnknown("Published", "Waiting", "for it")
			},
			want: times{"Published": longAgo, "Ready": longAgo},
		},
		"another reason, by hand": {
			reason: "whatever time an author sets",
			change: func(_ context.Context, r *fixture.Resource) {
				for i := range r.Status.Conditions {
					r.Status.Conditions[i].Message = "changed"
					r.Status.Conditions[i].LastTransitionTime = later
				}
			},
			want: times{"Published": longAgo, "Ready": longAgo},
		},
		"another status, by hand": {
			reason: "the time of a transition is what the author says",
			change: func(_ context.Context, r *fixture.Resource) {
				r.Status.Conditions[0].Status = metav1.ConditionFalse
				r.Status.Conditions[0].LastTransitionTime = later
			},
			want: times{"Published": later, "Ready": longAgo},
		},
		"a new condition": {
			reason: "what was not there before has no time to keep",
			change: func(ctx context.Context, r *fixture.Resource) {
				manage(ctx, r).SetCondition(metav1.Condition{Type: "Added", Status: metav1.ConditionUnknown, Reason: "New"})
			},
			want: times{"Published": longAgo, "Ready": longAgo, "Added": later},
		},
		"there and back": {
			reason: "a status that is what it was has not changed, whatever has happened in between",
			change: func(ctx context.Context, r *fixture.Resource) {
				manage(ctx, r).MarkFalse("Published", "Oops", "")
				manage(ctx, r).MarkUnknown("Published", "Waiting", "again")
			},
			want: times{"Published": longAgo, "Ready": longAgo},
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := newResource(settled, func(r *fixture.Resource) {
				r.Status.Conditions = append([]metav1.Condition{{
					Type: "Published", Status: metav1.ConditionUnknown, Reason: "Initializing", LastTransitionTime: longAgo,
				}}, r.Status.Conditions...)
			})
			w := newWorld(t, given)
			r := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
				tc.change(ctx, r)
				return nil
			}}}
			_, err := r.Reconcile(rtime.StashNow(context.Background(), now), testRequest)
			wantErr(t, nil, err)
			equal(t, "status writes", 1, w.Count("update Resource/status"))
			got := times{}
			for _, condition := range stored(w, given).Status.Conditions {
				got[condition.Type] = condition.LastTransitionTime
			}
			equal(t, "transition times, for "+tc.reason, tc.want, got)
		})
	}
}
