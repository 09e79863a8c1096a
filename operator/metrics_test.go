// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/uuid"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

func TestRemovedMetricsCountNoHandlers(t *testing.T) {
	for name, tc := range map[string]struct {
		removed bool
		want    map[string]float64
	}{
		"by default": {want: map[string]float64{
			"trueup_handler_calls_total": 1, "trueup_handler_retries_exhausted_total": 1, "trueup_handler_resources": 1,
		}},
		"removed": {removed: true, want: map[string]float64{
			"trueup_handler_calls_total": 0, "trueup_handler_retries_exhausted_total": 0, "trueup_handler_resources": 0,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, version("", 1, 1))
			mgr := newManager(t, w)
			config := reconcilers.NewConfig(mgr, nil, time.Hour)
			config.APIReader, config.Recorder, config.EventRecorder = w.config.APIReader, w.config.Recorder, nil
			if tc.removed {
				observe.Of(mgr).Remove(metrics.Default())
			}
			handler := &operator.WithEdge[*fixture.Resource]{
				Name: t.Name() + "/" + string(uuid.NewUUID()), // the process may repeat the test, and has one registry
				Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
					Sync: func(context.Context, *fixture.Resource) error { return errTest },
				},
				RetryPolicy: func(error, int) (bool, time.Duration) { return false, 0 },
			}
			c := &operator.Controller[*fixture.Resource]{Config: config, Handlers: []sub{handler}}
			wantErr(t, c.SetupWithManager(t.Context(), mgr))
			if _, err := c.Reconcile(calledby.Controller(), testRequest); err == nil {
				t.Error("the handler did not fail")
			}
			got := map[string]float64{}
			for metric := range tc.want {
				got[metric] = apitest.Counted(t, metric, map[string]string{"handler": handler.Name})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
		})
	}
}
