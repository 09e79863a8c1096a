// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/apis"
	rtime "trueup.dev/time"
)

// now is not in whole seconds; stamp is now as the API stores it.
var (
	now   = time.Date(2026, 3, 1, 12, 0, 0, 987654321, time.UTC)
	stamp = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	old   = metav1.NewTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
)

// condition returns a condition that changed at the given time.
func condition(t string, status metav1.ConditionStatus, reason, message string, at metav1.Time) metav1.Condition {
	return metav1.Condition{Type: t, Status: status, Reason: reason, Message: message, LastTransitionTime: at}
}

func TestConditionSets(t *testing.T) {
	tests := map[string]struct {
		reason string
		set    apis.ConditionSet
		happy  metav1.Condition
	}{
		"Living": {
			reason: "the happy condition of a living set is Ready",
			set:    apis.NewLivingConditionSet("A"),
			happy:  condition("Ready", metav1.ConditionTrue, "Ready", "", stamp),
		},
		"LivingWithHappyReason": {
			reason: "the happy reason is used",
			set:    apis.NewLivingConditionSetWithHappyReason("Serving", "A"),
			happy:  condition("Ready", metav1.ConditionTrue, "Serving", "", stamp),
		},
		"Batch": {
			reason: "the happy condition of a batch set is Succeeded",
			set:    apis.NewBatchConditionSet("A"),
			happy:  condition("Succeeded", metav1.ConditionTrue, "Succeeded", "", stamp),
		},
		"BatchWithHappyReason": {
			reason: "the happy reason is used",
			set:    apis.NewBatchConditionSetWithHappyReason("Done", "A"),
			happy:  condition("Succeeded", metav1.ConditionTrue, "Done", "", stamp),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status := &apis.Status{}
			manager := tt.set.ManageWithContext(rtime.StashNow(t.Context(), now), status)
			manager.MarkTrue("A", "Fine", "")

			want := []metav1.Condition{condition("A", metav1.ConditionTrue, "Fine", "", stamp), tt.happy}
			if diff := cmp.Diff(want, status.Conditions); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if !manager.IsHappy() {
				t.Error("IsHappy is false")
			}
		})
	}
}

func TestConditionSetDependents(t *testing.T) {
	status := &apis.Status{}
	set := apis.NewLivingConditionSet("A", "Ready", "B", "A", "Ready")
	set.ManageWithContext(rtime.StashNow(t.Context(), now), status).InitializeConditions()

	want := []metav1.Condition{
		condition("A", metav1.ConditionUnknown, "Initializing", "", stamp),
		condition("B", metav1.ConditionUnknown, "Initializing", "", stamp),
		condition("Ready", metav1.ConditionUnknown, "Initializing", "", stamp),
	}
	if diff := cmp.Diff(want, status.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}

	// If the happy condition were a dependent of itself it could never become True.
	manager := set.ManageWithContext(rtime.StashNow(t.Context(), now), status)
	manager.MarkTrue("A", "Fine", "")
	manager.MarkTrue("B", "Fine", "")
	if !manager.IsHappy() {
		t.Error("all dependents are True, but IsHappy is false")
	}
}

func TestManageWithContextUsesOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := &apis.Status{}
		want := metav1.Now().Rfc3339Copy()
		// without a time on the context, the clock is read when the manager is made
		manager := apis.NewLivingConditionSet("A", "B").ManageWithContext(t.Context(), status)
		time.Sleep(time.Hour)
		manager.MarkTrue("A", "Fine", "")
		time.Sleep(time.Hour)
		manager.MarkTrue("B", "Fine", "")
		for _, c := range status.Conditions {
			if diff := cmp.Diff(want, c.LastTransitionTime); diff != "" {
				t.Errorf("lastTransitionTime of %s (-want +got):\n%s", c.Type, diff)
			}
		}
	})
}

func TestManageUsesTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := &apis.Status{}
		apis.NewLivingConditionSet().Manage(status).MarkTrue(apis.ConditionReady, "Fine", "")
		want := []metav1.Condition{condition("Ready", metav1.ConditionTrue, "Fine", "", metav1.Now().Rfc3339Copy())}
		if diff := cmp.Diff(want, status.Conditions); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
	})
}

func TestLastTransitionTimeSurvivesTheAPI(t *testing.T) {
	status := &apis.Status{}
	manager := apis.NewLivingConditionSet().ManageWithContext(rtime.StashNow(t.Context(), now), status)
	manager.MarkTrue(apis.ConditionReady, "Fine", "")

	written := status.Conditions[0].LastTransitionTime
	data, err := written.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var read metav1.Time
	if err := read.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	if !written.Equal(&read) {
		t.Errorf("wrote %v, read back %v", written, read)
	}
}
