// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

type (
	retry     = reconcilers.Retry[*fixture.Resource]
	timeout   = reconcilers.Timeout[*fixture.Resource]
	rateLimit = reconcilers.RateLimit[*fixture.Resource]
	periodic  = reconcilers.Periodic[*fixture.Resource]
	paused    = reconcilers.Paused[*fixture.Resource]
)

func TestDeferring_Validate(t *testing.T) {
	invalid := &syncReconciler{Name: "x"}
	const why = `: SyncReconciler "x" must implement Sync or SyncWithResult`
	for name, tc := range map[string]validated{
		"Retry": {reconciler: &retry{Reconciler: nothing()}},
		"Retry, wrong": {
			&retry{InitialDelay: -time.Second, MaxDelay: -time.Minute, MaxAttempts: -1}, []string{
				`Retry "Retry" must implement Reconciler`,
				`Retry "Retry" must define a positive InitialDelay, got -1s`,
				`Retry "Retry" must define a MaxDelay of at least -1s, got -1m0s`,
				`Retry "Retry" must not define a negative MaxAttempts, got -1`,
			}, nil,
		},
		"Retry, invalid below": {
			&retry{Reconciler: invalid}, nil, []string{`Retry "Retry" must have a valid Reconciler` + why},
		},
		"Timeout": {reconciler: &timeout{After: time.Second, Reconciler: nothing()}},
		"Timeout, empty": {
			&timeout{},
			[]string{`Timeout "Timeout" must define a positive After, got 0s`, `Timeout "Timeout" must implement Reconciler`},
			nil,
		},
		"Timeout, invalid below": {
			&timeout{After: time.Second, Reconciler: invalid}, nil, []string{
				`Timeout "Timeout" must have a valid Reconciler` + why,
			},
		},
		"RateLimit": {reconciler: &rateLimit{Interval: time.Second, Reconciler: nothing()}},
		"RateLimit, wrong": {
			&rateLimit{Runs: -1}, []string{
				`RateLimit "RateLimit" must define a positive Runs, got -1`,
				`RateLimit "RateLimit" must define a positive Interval, got 0s`,
				`RateLimit "RateLimit" must implement Reconciler`,
			}, nil,
		},
		"RateLimit, invalid below": {
			&rateLimit{Interval: time.Second, Reconciler: invalid}, nil, []string{
				`RateLimit "RateLimit" must have a valid Reconciler` + why,
			},
		},
		"Periodic": {reconciler: &periodic{Interval: time.Hour, Reconciler: nothing()}},
		"Periodic, empty": {
			&periodic{}, []string{
				`Periodic "Periodic" must define a positive Interval, got 0s`, `Periodic "Periodic" must implement Reconciler`,
			}, nil,
		},
		"Periodic, invalid below": {
			&periodic{Interval: time.Hour, Reconciler: invalid}, nil, []string{
				`Periodic "Periodic" must have a valid Reconciler` + why,
			},
		},
		"Paused":        {reconciler: &paused{Condition: "Paused", Reconciler: nothing()}},
		"Paused, empty": {&paused{Name: "n"}, []string{`Paused "n" must implement Reconciler`}, nil},
		"Paused, without conditions": {
			&reconcilers.Paused[*corev1.ConfigMap]{
				Condition: "Paused", Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{},
			},
			[]string{`Paused "Paused" may not define Condition: ConfigMap has no field Conditions of type []metav1.Condition ` +
				`in its status`},
			nil,
		},
		"Paused, invalid below": {
			&paused{Reconciler: invalid}, nil, []string{`Paused "Paused" must have a valid Reconciler` + why},
		},
	} {
		t.Run(name, tc.check)
	}
}
