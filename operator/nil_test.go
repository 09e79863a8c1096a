// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/operator"
	"trueup.dev/resource"
)

func TestOpinionatedRetryDequeuePolicy_WithNilObjects(t *testing.T) {
	some := version("a", 1, 1)
	for name, tc := range map[string]struct {
		newObject, retryObject resource.Object
		newAction, retryAction operator.ResourceAction
		want                   bool
	}{
		"no objects": {newAction: operator.ResourceActionUpdate, retryAction: operator.ResourceActionUpdate},
		"no new object": {
			retryObject: some, newAction: operator.ResourceActionUpdate, retryAction: operator.ResourceActionUpdate,
		},
		"no retried object": {
			newObject: some, newAction: operator.ResourceActionUpdate, retryAction: operator.ResourceActionUpdate,
		},
		"a nil pointer": {
			newObject: (*corev1.ConfigMap)(nil), newAction: operator.ResourceActionUpdate,
			retryObject: some, retryAction: operator.ResourceActionUpdate,
		},
		"a deletion": {
			newAction: operator.ResourceActionDelete, retryAction: operator.ResourceActionUpdate, want: true,
		},
		"a deletion, retried": {newAction: operator.ResourceActionDelete, retryAction: operator.ResourceActionDelete},
	} {
		t.Run(name, func(t *testing.T) {
			if got := operator.OpinionatedRetryDequeuePolicy(
				tc.newAction, tc.newObject, tc.retryAction, tc.retryObject, errTest,
			); got != tc.want {
				t.Errorf("replaces the retry = %t, want %t", got, tc.want)
			}
		})
	}
}
