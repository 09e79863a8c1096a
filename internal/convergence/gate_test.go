// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

// A reconciler that reads a stale cache creates a child with a generated name twice. Reconcilers wait for their caches,
// unless this is disabled.
func TestGate(t *testing.T) {
	scenario := func(allowStaleReads bool) converge.Scenario {
		return converge.Scenario{
			Scheme: scheme,
			For:    &fixture.Resource{},
			Setup: func(mgr ctrl.Manager) error {
				config := reconcilers.NewConfig(mgr, nil, time.Hour)
				config.AllowStaleReads = allowStaleReads
				root := &reconcilers.ResourceReconciler[*fixture.Resource]{Reconciler: newChild(generatedName), Config: config}
				return root.SetupWithManager(t.Context(), mgr)
			},
			Steps: converge.Lifecycle(newResource("one")),
		}
	}
	for _, c := range []struct {
		name            string
		allowStaleReads bool
		seed            uint64
	}{{"stale reads allowed", true, 1}, {"stale reads allowed, other seed", true, 2}, {"gated", false, 1}} {
		t.Run(c.name, func(t *testing.T) {
			report, err := converge.Check(t, scenario(c.allowStaleReads), converge.Options{Seed: c.seed})
			switch {
			case err != nil:
				t.Fatal(err)
			case !c.allowStaleReads && report.Failure != nil:
				t.Error(report.Failure)
			case c.allowStaleReads && report.Failure == nil:
				t.Error("nothing was found, although the child is created again when the cache is late")
			case c.allowStaleReads && !strings.Contains(report.Failure.Replay, "lag-"):
				t.Errorf("found without a cache that is late:\n%v", report.Failure)
			}
		})
	}
}
