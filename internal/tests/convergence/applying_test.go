// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// TestApplyingObjectManager_StaleReads proves that an applied child needs no protection against stale caches: a request
// that is repeated has no effect, and one that is late names the object that it was meant for.
func TestApplyingObjectManager_StaleReads(t *testing.T) {
	prove(t, converge.Scenario{
		Scheme: scheme,
		For:    &fixture.Resource{},
		Setup: func(mgr ctrl.Manager) error {
			config := reconcilers.NewConfig(mgr, nil, time.Hour)
			config.AllowStaleReads = true
			c := newChild(fixedName)
			c.MergeBeforeUpdate, c.ChildObjectManager = nil, &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{}
			root := &reconcilers.ResourceReconciler[*fixture.Resource]{Reconciler: c, Config: config}
			return root.SetupWithManager(t.Context(), mgr)
		},
		Steps: lives(),
	})
}
