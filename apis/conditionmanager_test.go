// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/apis"
	rtime "trueup.dev/time"
)

func TestConditionManager(t *testing.T) {
	const (
		isTrue    = metav1.ConditionTrue
		isFalse   = metav1.ConditionFalse
		isUnknown = metav1.ConditionUnknown
	)
	dependents := []string{"A", "B"}

	tests := map[string]struct {
		reason     string
		dependents []string
		given      []metav1.Condition
		do         func(m apis.ConditionManager)
		want       []metav1.Condition
		wantHappy  bool
	}{
		"SetConditionAdds": {
			reason: "a new condition gets the time and is sorted in, others are kept",
			given:  []metav1.Condition{condition("A", isTrue, "Fine", "", old), condition("C", isTrue, "Fine", "", old)},
			do: func(m apis.ConditionManager) {
				m.SetCondition(metav1.Condition{Type: "B", Status: isFalse, Reason: "Bad", ObservedGeneration: 4})
			},
			want: []metav1.Condition{
				condition("A", isTrue, "Fine", "", old),
				{Type: "B", Status: isFalse, Reason: "Bad", ObservedGeneration: 4, LastTransitionTime: stamp},
				condition("C", isTrue, "Fine", "", old),
			},
		},
		"SetConditionEqual": {
			reason: "a condition that differs only in time is not changed, and the list is not sorted",
			given:  []metav1.Condition{condition("B", isTrue, "Fine", "", old), condition("A", isTrue, "Fine", "", old)},
			do:     func(m apis.ConditionManager) { m.SetCondition(condition("A", isTrue, "Fine", "", stamp)) },
			want:   []metav1.Condition{condition("B", isTrue, "Fine", "", old), condition("A", isTrue, "Fine", "", old)},
		},
		"SetConditionNewMessage": {
			reason: "a new message is not a transition",
			given:  []metav1.Condition{condition("A", isTrue, "Fine", "2 of 3", old)},
			do:     func(m apis.ConditionManager) { m.SetCondition(condition("A", isTrue, "Fine", "3 of 3", old)) },
			want:   []metav1.Condition{condition("A", isTrue, "Fine", "3 of 3", old)},
		},
		"SetConditionDependent": {
			reason:     "setting a dependent does not change the happy condition",
			dependents: dependents,
			given:      []metav1.Condition{condition("Ready", isTrue, "Ready", "", old)},
			do:         func(m apis.ConditionManager) { m.SetCondition(condition("A", isFalse, "Bad", "", old)) },
			want: []metav1.Condition{
				condition("A", isFalse, "Bad", "", stamp),
				condition("Ready", isTrue, "Ready", "", old),
			},
			wantHappy: true,
		},
		"InitializeEmpty": {
			reason:     "all conditions are added as Unknown",
			dependents: dependents,
			do:         func(m apis.ConditionManager) { m.InitializeConditions() },
			want: []metav1.Condition{
				condition("A", isUnknown, "Initializing", "", stamp),
				condition("B", isUnknown, "Initializing", "", stamp),
				condition("Ready", isUnknown, "Initializing", "", stamp),
			},
		},
		"InitializeKeeps": {
			reason:     "existing conditions are kept",
			dependents: dependents,
			given:      []metav1.Condition{condition("A", isFalse, "Bad", "", old), condition("Ready", isFalse, "Bad", "", old)},
			do:         func(m apis.ConditionManager) { m.InitializeConditions() },
			want: []metav1.Condition{
				condition("A", isFalse, "Bad", "", old),
				condition("B", isUnknown, "Initializing", "", stamp),
				condition("Ready", isFalse, "Bad", "", old),
			},
		},
		"InitializeHappy": {
			reason:     "new dependents of a happy resource start as True",
			dependents: dependents,
			given: []metav1.Condition{
				condition("A", isTrue, "Fine", "", old),
				condition("Ready", isTrue, "Ready", "", old),
			},
			do: func(m apis.ConditionManager) { m.InitializeConditions() },
			want: []metav1.Condition{
				condition("A", isTrue, "Fine", "", old),
				condition("B", isTrue, "Initializing", "", stamp),
				condition("Ready", isTrue, "Ready", "", old),
			},
			wantHappy: true,
		},
		"MarkTrueSome": {
			reason:     "one dependent is not enough",
			dependents: dependents,
			do:         func(m apis.ConditionManager) { m.MarkTrue("A", "Fine", "%d of %d", 3, 3) },
			want:       []metav1.Condition{condition("A", isTrue, "Fine", "3 of 3", stamp)},
		},
		"MarkTrueAll": {
			reason:     "the last dependent makes the resource happy, with the reason of the set and no message",
			dependents: dependents,
			given: []metav1.Condition{
				condition("A", isTrue, "Fine", "", old),
				condition("Ready", isFalse, "Bad", "broken", old),
			},
			do: func(m apis.ConditionManager) { m.MarkTrue("B", "Good", "really") },
			want: []metav1.Condition{
				condition("A", isTrue, "Fine", "", old),
				condition("B", isTrue, "Good", "really", stamp),
				condition("Ready", isTrue, "Ready", "", stamp),
			},
			wantHappy: true,
		},
		"MarkTrueAgain": {
			reason:     "marking a condition with the same values keeps all times",
			dependents: []string{"A"},
			given: []metav1.Condition{
				condition("A", isTrue, "Fine", "", old),
				condition("Ready", isTrue, "Ready", "", old),
			},
			do: func(m apis.ConditionManager) { m.MarkTrue("A", "Fine", "") },
			want: []metav1.Condition{
				condition("A", isTrue, "Fine", "", old),
				condition("Ready", isTrue, "Ready", "", old),
			},
			wantHappy: true,
		},
		"MarkTrueOutsider": {
			reason:     "a condition that is not a dependent is set; the happy condition follows the dependents",
			dependents: dependents,
			given:      []metav1.Condition{condition("A", isTrue, "Fine", "", old), condition("B", isTrue, "Fine", "", old)},
			do:         func(m apis.ConditionManager) { m.MarkTrue("Z", "Fine", "") },
			want: []metav1.Condition{
				condition("A", isTrue, "Fine", "", old),
				condition("B", isTrue, "Fine", "", old),
				condition("Ready", isTrue, "Ready", "", stamp),
				condition("Z", isTrue, "Fine", "", stamp),
			},
			wantHappy: true,
		},
		"MarkTrueWithoutDependents": {
			reason: "without dependents only the named condition is set",
			do:     func(m apis.ConditionManager) { m.MarkTrue("Z", "Fine", "") },
			want:   []metav1.Condition{condition("Z", isTrue, "Fine", "", stamp)},
		},
		"MarkTrueHappyWithoutDependents": {
			reason:    "without dependents the author sets the happy condition",
			do:        func(m apis.ConditionManager) { m.MarkTrue("Ready", "Custom", "text") },
			want:      []metav1.Condition{condition("Ready", isTrue, "Custom", "text", stamp)},
			wantHappy: true,
		},
		"MarkUnknownDependent": {
			reason:     "an unknown dependent makes the resource unknown, for the same reason",
			dependents: dependents,
			given:      []metav1.Condition{condition("Ready", isTrue, "Ready", "", old)},
			do:         func(m apis.ConditionManager) { m.MarkUnknown("A", "Waiting", "for %s", "B") },
			want: []metav1.Condition{
				condition("A", isUnknown, "Waiting", "for B", stamp),
				condition("Ready", isUnknown, "Waiting", "for B", stamp),
			},
		},
		"MarkUnknownOutsider": {
			reason:     "a condition that is not a dependent does not change the happy condition",
			dependents: dependents,
			given:      []metav1.Condition{condition("Ready", isTrue, "Ready", "", old)},
			do:         func(m apis.ConditionManager) { m.MarkUnknown("Z", "Waiting", "") },
			want: []metav1.Condition{
				condition("Ready", isTrue, "Ready", "", old),
				condition("Z", isUnknown, "Waiting", "", stamp),
			},
			wantHappy: true,
		},
		"MarkUnknownBesideFalse": {
			reason:     "a failure takes precedence over an unknown state",
			dependents: dependents,
			given: []metav1.Condition{
				condition("B", isFalse, "Bad", "broken", old),
				condition("Ready", isFalse, "Bad", "broken", old),
			},
			do: func(m apis.ConditionManager) { m.MarkUnknown("A", "Waiting", "") },
			want: []metav1.Condition{
				condition("A", isUnknown, "Waiting", "", stamp),
				condition("B", isFalse, "Bad", "broken", old),
				condition("Ready", isFalse, "Bad", "broken", old),
			},
		},
		"MarkUnknownRepairsHappy": {
			reason:     "with a failed dependent the happy condition must be False",
			dependents: dependents,
			given: []metav1.Condition{
				condition("B", isFalse, "Bad", "broken", old),
				condition("Ready", isTrue, "Ready", "", old),
			},
			do: func(m apis.ConditionManager) { m.MarkUnknown("Z", "Waiting", "patiently") },
			want: []metav1.Condition{
				condition("B", isFalse, "Bad", "broken", old),
				condition("Ready", isFalse, "Waiting", "patiently", stamp),
				condition("Z", isUnknown, "Waiting", "patiently", stamp),
			},
		},
		"MarkUnknownWithoutDependents": {
			reason: "without dependents only the named condition is set",
			do:     func(m apis.ConditionManager) { m.MarkUnknown("Z", "Waiting", "") },
			want:   []metav1.Condition{condition("Z", isUnknown, "Waiting", "", stamp)},
		},
		"MarkFalseDependent": {
			reason:     "one failure is enough, for the same reason",
			dependents: dependents,
			given: []metav1.Condition{
				condition("B", isTrue, "Fine", "", old),
				condition("Ready", isTrue, "Ready", "", old),
			},
			do: func(m apis.ConditionManager) { m.MarkFalse("A", "Bad", "%d%% broken", 20) },
			want: []metav1.Condition{
				condition("A", isFalse, "Bad", "20% broken", stamp),
				condition("B", isTrue, "Fine", "", old),
				condition("Ready", isFalse, "Bad", "20% broken", stamp),
			},
		},
		"MarkFalseOutsider": {
			reason:     "a condition that is not a dependent does not change the happy condition",
			dependents: dependents,
			given:      []metav1.Condition{condition("Ready", isTrue, "Ready", "", old)},
			do:         func(m apis.ConditionManager) { m.MarkFalse("Z", "Bad", "") },
			want: []metav1.Condition{
				condition("Ready", isTrue, "Ready", "", old),
				condition("Z", isFalse, "Bad", "", stamp),
			},
			wantHappy: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status := &apis.Status{Conditions: tt.given}
			ctx := rtime.StashNow(t.Context(), now)
			manager := apis.NewLivingConditionSet(tt.dependents...).ManageWithContext(ctx, status)
			tt.do(manager)
			if diff := cmp.Diff(tt.want, status.Conditions); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if got := manager.IsHappy(); got != tt.wantHappy {
				t.Errorf("IsHappy: got %t, want %t", got, tt.wantHappy)
			}
		})
	}
}

func TestConditionManagerClearCondition(t *testing.T) {
	const refused = "Clearing terminal conditions not implemented"
	given := []metav1.Condition{
		condition("Z", metav1.ConditionTrue, "Fine", "", old),
		condition("A", metav1.ConditionTrue, "Fine", "", old),
		condition("Ready", metav1.ConditionTrue, "Ready", "", old),
	}
	tests := map[string]struct {
		reason  string
		clear   string
		want    []metav1.Condition
		wantErr string
	}{
		"Other": {
			reason: "a condition that is not in the set can be removed, the rest is sorted",
			clear:  "Z",
			want:   []metav1.Condition{given[1], given[2]},
		},
		"Absent":    {reason: "the condition does not exist", clear: "Q", want: given},
		"Happy":     {reason: "the happy condition cannot be removed", clear: "Ready", want: given, wantErr: refused},
		"Dependent": {reason: "dependents cannot be removed", clear: "A", want: given, wantErr: refused},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status := &apis.Status{Conditions: given}
			err := apis.NewLivingConditionSet("A").ManageWithContext(t.Context(), status).ClearCondition(tt.clear)
			var gotErr string
			if err != nil {
				gotErr = err.Error()
			}
			if diff := cmp.Diff(tt.wantErr, gotErr); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, status.Conditions); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestConditionManagerGetCondition(t *testing.T) {
	status := &apis.Status{Conditions: []metav1.Condition{condition("A", metav1.ConditionTrue, "Fine", "", old)}}
	manager := apis.NewLivingConditionSet("A").ManageWithContext(t.Context(), status)

	got := manager.GetCondition("A")
	if diff := cmp.Diff(&status.Conditions[0], got); diff != "" {
		t.Errorf("GetCondition (-want +got):\n%s", diff)
	}
	got.Reason = "Changed"
	if diff := cmp.Diff("Fine", status.Conditions[0].Reason); diff != "" {
		t.Errorf("changing the returned condition changed the status (-want +got):\n%s", diff)
	}
	if got := manager.GetCondition("B"); got != nil {
		t.Errorf("got %v for a condition that does not exist, want nil", got)
	}
}

func TestConditionManagerWithoutStatus(t *testing.T) {
	manager := apis.NewLivingConditionSet("A").ManageWithContext(t.Context(), nil)
	manager.InitializeConditions()
	manager.MarkTrue("A", "Fine", "")
	manager.MarkUnknown("A", "Waiting", "")
	manager.MarkFalse("A", "Bad", "")
	manager.SetCondition(metav1.Condition{Type: "A"})
	if err := manager.ClearCondition("Z"); err != nil {
		t.Errorf("ClearCondition: %v", err)
	}
	if got := manager.GetCondition("A"); got != nil {
		t.Errorf("got condition %v, want none", got)
	}
	if manager.IsHappy() {
		t.Error("happy without a status")
	}
}

// The slice of a status may belong to a cached object.
func TestConditionManagerDoesNotWriteIntoTheGivenSlice(t *testing.T) {
	shared := make([]metav1.Condition, 2, 8)
	shared[0] = condition("B", metav1.ConditionTrue, "Fine", "", old)
	shared[1] = condition("C", metav1.ConditionTrue, "Fine", "", old)
	want := append([]metav1.Condition(nil), shared...)

	status := &apis.Status{Conditions: shared}
	manager := apis.NewLivingConditionSet("A", "B").ManageWithContext(t.Context(), status)
	manager.MarkFalse("A", "Bad", "")
	manager.MarkFalse("B", "Bad", "")
	if err := manager.ClearCondition("C"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, shared); diff != "" {
		t.Errorf("slice of the caller (-want +got):\n%s", diff)
	}
}
