// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/apis"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// TestResourceReconciler_ConditionsHaveObservedGeneration reconciles a resource of generation 7 that was reconciled at
// generation 3.
func TestResourceReconciler_ConditionsHaveObservedGeneration(t *testing.T) {
	set := apis.NewLivingConditionSet("Published")
	condition := func(kind string, generation int64) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: generation,
			LastTransitionTime: longAgo,
		}
	}
	// observed returns the resource with an observed generation and conditions.
	observed := func(generation int64, conditions ...metav1.Condition) *fixture.Resource {
		return newResource(func(r *fixture.Resource) {
			r.Generation, r.Status.ObservedGeneration, r.Status.Conditions = 7, generation, conditions
		})
	}
	steady := func(published, ready int64) []metav1.Condition {
		return []metav1.Condition{condition("Published", published), condition("Ready", ready)}
	}
	confirm := func(ctx context.Context, r *fixture.Resource) {
		set.ManageWithContext(ctx, &r.Status).MarkTrue("Published", "Ready", "")
	}
	foreign := metav1.Condition{Type: "Billed", Status: metav1.ConditionTrue, Reason: "Paid", LastTransitionTime: longAgo}

	cases := map[string]struct {
		reason string
		given  *fixture.Resource
		sync   func(context.Context, *fixture.Resource)
		err    error
		want   *fixture.Resource // nil means that nothing is written
		direct bool
	}{
		"set again": {
			reason: "a condition that is set again is up to date",
			given:  observed(3, steady(3, 3)...), sync: confirm, want: observed(7, steady(7, 7)...),
		},
		"set again, without a generation": {
			reason: "conditions of an earlier version get a generation",
			given:  observed(7, steady(0, 0)...), sync: confirm, want: observed(7, steady(7, 7)...),
		},
		"up to date": {
			reason: "each generation causes one write",
			given:  observed(7, steady(7, 7)...), sync: confirm,
		},
		"not set": {
			reason: "conditions that InitializeConditions manages are up to date after all steps have run, others are not",
			given:  observed(3, steady(3, 3)...), sync: func(
				context.Context, *fixture.Resource,
			) {
			}, want: observed(7, steady(3, 7)...),
		},
		"not set, and a failure": {
			reason: "a step that did not run has not observed the generation",
			given:  observed(3, steady(3, 3)...), sync: func(context.Context, *fixture.Resource) {}, err: errTest,
		},
		"set by the user, initialized condition": {
			reason: "a generation that the user sets is kept",
			given:  observed(7, steady(7, 5)...),
			sync: func(ctx context.Context, r *fixture.Resource) {
				set.ManageWithContext(ctx, &r.Status).SetCondition(condition("Ready", 5))
			},
		},
		"of another writer": {
			reason: "conditions of other writers are not changed",
			given:  observed(3, append([]metav1.Condition{foreign}, steady(3, 3)...)...), sync: confirm,
			want: observed(7, append([]metav1.Condition{foreign}, steady(7, 7)...)...),
		},
		"failure": {
			reason: "a condition that was set before something failed says what it was computed from; the status as a whole " +
				"does not",
			given: observed(3, steady(3, 3)...), sync: confirm, err: errTest, want: observed(3, steady(7, 7)...),
		},
		"without context": {
			reason: "every way to set a condition is detected",
			given:  observed(3, steady(3, 3)...),
			sync: func(_ context.Context, r *fixture.Resource) {
				set.ManageWithContext(context.Background(), &r.Status).MarkTrue("Published", "Ready", "")
			},
			want: observed(7, steady(7, 7)...),
		},
		"by apimachinery": {
			reason: "every way to set a condition is detected",
			given:  observed(3, steady(3, 3)...),
			sync: func(_ context.Context, r *fixture.Resource) {
				meta.SetStatusCondition(&r.Status.Conditions, condition("Published", 0))
				meta.SetStatusCondition(&r.Status.Conditions, condition("Added", 0))
			},
			want: observed(7, condition("Published", 7), condition("Ready", 7), condition("Added", 7)),
		},
		"changed in place": {
			reason: "a condition with a new message has changed",
			given:  observed(3, steady(3, 3)...),
			sync:   func(_ context.Context, r *fixture.Resource) { r.Status.Conditions[1].Message = "so far" },
			want: observed(7, condition("Published", 3), func() metav1.Condition {
				c := condition("Ready", 7)
				c.Message = "so far"
				return c
			}()),
		},
		"set by the user": {
			reason: "a generation that the user sets is kept",
			given:  observed(3, steady(3, 3)...),
			sync: func(ctx context.Context, r *fixture.Resource) {
				set.ManageWithContext(ctx, &r.Status).SetCondition(condition("Published", 5))
			},
			want: observed(7, steady(5, 7)...),
		},
		"of another object": {
			reason: "a condition of another object does not have this generation",
			given:  observed(7, steady(7, 7)...),
			sync: func(ctx context.Context, _ *fixture.Resource) {
				other := observed(0)
				confirm(ctx, other)
				equal(
					t, "observedGeneration of a condition of another object", int64(0), other.Status.Conditions[0].ObservedGeneration,
				)
			},
		},
		"initialized": {
			reason: "initialized conditions have this generation",
			given:  observed(3), sync: func(context.Context, *fixture.Resource) {},
			want: observed(7, metav1.Condition{
				Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Initializing", ObservedGeneration: 7,
			}),
		},
		"no generation": {
			reason: "a resource without a generation has no generation to observe",
			given: newResource(func(r *fixture.Resource) {
				r.Generation, r.Status.Conditions = 0, steady(0, 0)
			}), sync: confirm,
		},
		"called directly": {
			reason: "users' tests compare conditions without a generation", direct: true,
			given: observed(3, steady(0, 0)...), sync: confirm, want: observed(7, steady(0, 0)...),
		},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			tc := rtesting.ReconcilerTestCase{
				Request: testRequest, GivenObjects: objects{tt.given}, StatusSubResourceTypes: hasStatus,
				Metadata: reconciling(&syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
					tt.sync(ctx, r)
					return tt.err
				}}),
			}
			if tt.want != nil {
				tc.ExpectStatusUpdates = objects{tt.want}
				if tt.direct {
					tc.ExpectEvents = statusUpdated
				}
			}
			if tt.err != nil {
				tc.ShouldErr, tc.Verify = true, failsWith(tt.err)
				tc.ExpectEvents = events{warning("ReconcileFailed", "ResourceResourceReconciler.SyncReconciler: "+tt.err.Error())}
			}
			t.Log(tt.reason)
			tc.Run(t, scheme, func(t *testing.T, tc *rtesting.ReconcilerTestCase, c reconcilers.Config) root {
				r := resourceFactory(t, tc, c).(*resourceReconciler)
				if tt.direct {
					return r
				}
				return ctrlreconcile.Func(r.ReconcileManaged)
			})
		})
	}
}
