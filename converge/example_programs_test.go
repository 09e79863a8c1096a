// SPDX-License-Identifier: Apache-2.0

package converge_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
)

// Two replicas of a program with leader election. A leader that is paused for longer than its Lease lasts, and then
// continues, must do no harm.
func ExampleApplyOptions() {
	_ = func(t *testing.T, options ctrl.Options) { // the options of the real program
		elected := func(mgr ctrl.Manager) error {
			// Virtual time passes quickly.
			options.LeaseDuration, options.RenewDeadline = new(2*time.Hour), new(80*time.Minute)
			options.RetryPeriod = new(50 * time.Minute)
			if err := converge.ApplyOptions(mgr, options); err != nil {
				return err
			}
			return (&labeler{mgr.GetClient()}).SetupWithManager(mgr)
		}
		converge.Run(t, converge.Scenario{
			Scheme:   scheme.Scheme,
			For:      &corev1.Secret{},
			Setup:    elected,
			Programs: []converge.Program{{Name: "standby", Setup: elected}},
			Steps:    converge.Lifecycle(token),
			With:     []converge.Fault{converge.FaultPause},
		})
	}
}

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
