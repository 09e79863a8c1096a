// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/apis"
)

func TestConditionIs(t *testing.T) {
	type verdict struct{ True, False, Unknown bool }
	tests := map[string]struct {
		condition *metav1.Condition
		want      verdict
	}{
		"Nil":     {condition: nil, want: verdict{Unknown: true}},
		"Empty":   {condition: &metav1.Condition{}, want: verdict{Unknown: true}},
		"Unknown": {condition: &metav1.Condition{Status: metav1.ConditionUnknown}, want: verdict{Unknown: true}},
		"True":    {condition: &metav1.Condition{Status: metav1.ConditionTrue}, want: verdict{True: true}},
		"False":   {condition: &metav1.Condition{Status: metav1.ConditionFalse}, want: verdict{False: true}},
		"Invalid": {condition: &metav1.Condition{Status: "Perhaps"}, want: verdict{Unknown: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := verdict{
				True:    apis.ConditionIsTrue(tt.condition),
				False:   apis.ConditionIsFalse(tt.condition),
				Unknown: apis.ConditionIsUnknown(tt.condition),
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
