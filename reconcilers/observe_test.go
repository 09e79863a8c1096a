// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"testing"

	"trueup.dev/internal/apitest"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
)

func TestMetricsAreEnabledByDefault(t *testing.T) {
	for name, tc := range map[string]struct {
		disabled bool
		want     float64
	}{
		"by default": {want: 1},
		"disabled":   {disabled: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			mgr := newManager(t, w, newEventCache(w.Scheme))
			if tc.disabled {
				observe.Of(mgr).Remove(metrics.Default())
			}
			root := &resourceReconciler{Reconciler: sequence{syncNothing}, Config: configFor(w, mgr)}
			controller, err := root.SetupWithManagerYieldingController(t.Context(), mgr)
			if err != nil {
				t.Fatal(err)
			}
			labels := map[string]string{"step": "ResourceResourceReconciler", "outcome": string(observe.Succeeded)}
			before := apitest.Counted(t, "trueup_steps_total", labels)
			if _, err := controller.Reconcile(t.Context(), testRequest); err != nil {
				t.Fatal(err)
			}
			if got := apitest.Counted(t, "trueup_steps_total", labels) - before; got != tc.want {
				t.Errorf("%v steps are counted, want %v", got, tc.want)
			}
		})
	}
}
