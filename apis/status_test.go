// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/apis"
)

func TestStatusJSON(t *testing.T) {
	tests := map[string]struct {
		status apis.Status
		want   string
	}{
		"Empty": {
			want: `{}`,
		},
		"Filled": {
			status: apis.Status{
				ObservedGeneration: 3,
				Conditions: []metav1.Condition{{
					Type:               "Ready",
					Status:             metav1.ConditionTrue,
					Reason:             "Ready",
					LastTransitionTime: metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
				}},
			},
			want: `{"observedGeneration":3,"conditions":[` +
				`{"type":"Ready","status":"True","lastTransitionTime":"2026-03-01T12:00:00Z","reason":"Ready","message":""}]}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(tt.status)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusMergesConditionsByType(t *testing.T) {
	field, _ := reflect.TypeFor[apis.Status]().FieldByName("Conditions")
	want := reflect.StructTag(`json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`)
	if diff := cmp.Diff(want, field.Tag); diff != "" {
		t.Errorf("tag (-want +got):\n%s", diff)
	}
}

func TestStatusGetCondition(t *testing.T) {
	status := &apis.Status{}
	status.SetConditions([]metav1.Condition{{Type: "A", Reason: "First"}, {Type: "B", Reason: "Second"}})

	got := status.GetCondition("B")
	if diff := cmp.Diff(&metav1.Condition{Type: "B", Reason: "Second"}, got); diff != "" {
		t.Errorf("GetCondition (-want +got):\n%s", diff)
	}
	got.Reason = "Changed"
	if diff := cmp.Diff("Second", status.GetConditions()[1].Reason); diff != "" {
		t.Errorf("changing the returned condition changed the status (-want +got):\n%s", diff)
	}
	if got := status.GetCondition("C"); got != nil {
		t.Errorf("got %v for a condition that does not exist, want nil", got)
	}
}

func TestStatusDeepCopy(t *testing.T) {
	tests := map[string]*apis.Status{
		"Nil":             nil,
		"Zero":            {},
		"EmptyConditions": {Conditions: []metav1.Condition{}},
		"Filled":          {ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: "A"}, {Type: "B"}}},
	}
	for name, status := range tests {
		t.Run(name, func(t *testing.T) {
			got := status.DeepCopy()
			if diff := cmp.Diff(status, got); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
			if status == nil || len(status.Conditions) == 0 {
				return
			}
			got.Conditions[0].Type = "changed"
			if diff := cmp.Diff("A", status.Conditions[0].Type); diff != "" {
				t.Errorf("copy shares memory with the original (-want +got):\n%s", diff)
			}
		})
	}
}
