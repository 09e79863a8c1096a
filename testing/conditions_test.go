// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	rtesting "trueup.dev/testing"
)

// Does a table test notice a condition that a real API server refuses? Conditions of given objects may be incomplete.
func TestStatusUpdatesWithInvalidConditionsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		added   metav1.Condition
		refused bool
	}{
		"valid":             {metav1.Condition{Type: "New", Status: metav1.ConditionTrue, Reason: "Done"}, false},
		"no reason":         {metav1.Condition{Type: "New", Status: metav1.ConditionTrue}, true},
		"reason with space": {metav1.Condition{Type: "New", Status: metav1.ConditionTrue, Reason: "not found"}, true},
		"no status":         {metav1.Condition{Type: "New", Reason: "Done"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			given := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "it"}}
			given.Status.Conditions = []metav1.Condition{{Type: "Given", Status: metav1.ConditionTrue}}
			c := &rtesting.ExpectConfig{
				Scheme: fixture.NewScheme(), GivenObjects: []client.Object{given}, StatusSubResourceTypes: []client.Object{given},
			}
			written := given.DeepCopy()
			written.Status.Conditions = append(written.Status.Conditions, tc.added)
			err := c.Config().Status().Update(t.Context(), written)
			if refused := apierrs.IsInvalid(err); refused != tc.refused {
				t.Errorf("refused=%t, want %t: %v", refused, tc.refused, err)
			}
		})
	}
}
