// SPDX-License-Identifier: Apache-2.0

package converge_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
)

// Two programs that reconcile the same kind. The failure names both if they change the same field in turn.
func ExampleProgram() {
	_ = func(t *testing.T, other func(ctrl.Manager) error) {
		converge.Run(t, converge.Scenario{
			Scheme:   scheme.Scheme,
			For:      &corev1.Secret{},
			Setup:    func(mgr ctrl.Manager) error { return (&labeler{mgr.GetClient()}).SetupWithManager(mgr) },
			Programs: []converge.Program{{Name: "other", Setup: other}},
			Steps:    converge.Lifecycle(token),
		})
	}
}
