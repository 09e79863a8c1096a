// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
	"trueup.dev/reconcilers"
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

// reportedMetrics are the metrics of events that the reconcilers report themselves.
var reportedMetrics = []string{
	"trueup_halted_retries_total", "trueup_halted_waits_total", "trueup_hot_loop_waits_total", "trueup_hot_loops_total",
	"trueup_reflected_errors_total", "trueup_schema_failures_total", "trueup_stale_cache_timeouts_total",
	"trueup_lease_waits_total", "trueup_stale_cache_waits_total", "trueup_tracked_unwatched_total",
}

// addedTo is a manager that keeps the controller that is added to it.
type addedTo struct {
	ctrl.Manager
	controller controller.Controller
}

func (m *addedTo) Add(added manager.Runnable) error {
	m.controller, _ = added.(controller.Controller)
	return m.Manager.Add(added)
}

func TestRemovedMetricsCountNothing(t *testing.T) {
	// A reconcile reflects an error, tracks an object of an unwatched kind, and halts.
	all := map[string]float64{
		"trueup_halted_retries_total": 1, "trueup_reflected_errors_total": 1, "trueup_tracked_unwatched_total": 1,
	}
	for name, tc := range map[string]struct {
		removed, observed bool
		want              map[string]float64
	}{
		"an observed controller":                     {observed: true, want: all},
		"a controller that is not observed":          {want: all},
		"an observed controller, removed":            {observed: true, removed: true, want: map[string]float64{}},
		"a controller that is not observed, removed": {removed: true, want: map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			w.Fail("create ConfigMap", errForbidden)
			mgr := newManager(t, w, newEventCache(w.Scheme))
			config := configFor(w, mgr)
			if tc.removed {
				observe.Of(mgr).Remove(metrics.Default())
			}
			root := &resourceReconciler{
				Name: "counted", Config: config, Reconciler: sequence{newChildReconciler(w), &syncReconciler{
					Sync: func(ctx context.Context, r *fixture.Resource) error {
						key := client.ObjectKey{Namespace: r.Namespace, Name: "missing"}
						err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &corev1.Secret{})
						wantErr(t, nil, client.IgnoreNotFound(err))
						return reconcilers.ErrHaltSubReconcilers
					},
				}},
			}
			added := &addedTo{Manager: mgr}
			wantErr(t, nil, root.SetupWithManager(t.Context(), added))
			reconcile := root.Reconcile
			if tc.observed {
				reconcile = added.controller.Reconcile
			}
			before := map[string]float64{}
			for _, metric := range reportedMetrics {
				before[metric] = apitest.Counted(t, metric, nil)
			}
			_, err := reconcile(calledby.Controller(), testRequest)
			wantErr(t, nil, err)
			got := map[string]float64{}
			for _, metric := range reportedMetrics {
				if added := apitest.Counted(t, metric, nil) - before[metric]; added != 0 {
					got[metric] = added
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
		})
	}
}
