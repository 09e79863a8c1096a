// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// TestAdopt proves that an object that existed before its parent is adopted and released, whatever fails.
func TestAdopt(t *testing.T) {
	for name, allowStale := range map[string]bool{"guard": false, "stale reads": true} {
		t.Run(name, func(t *testing.T) {
			adopted := newChild(fixedName)
			always := func(context.Context, *fixture.Resource, *corev1.ConfigMap) bool { return true }
			adopted.Adopt, adopted.Release = always, always
			existing := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "child"}}
			steps := append(converge.Steps(converge.Apply(existing)),
				converge.Lifecycle(newResource("one"), setField("value", "two"), setField("childless", "yes"))...)
			prove(t, converge.Scenario{
				Scheme: scheme, For: &fixture.Resource{},
				Setup: func(mgr ctrl.Manager) error {
					config := reconcilers.NewConfig(mgr, nil, time.Hour)
					config.AllowStaleReads = allowStale
					root := &reconcilers.ResourceReconciler[*fixture.Resource]{Config: config, Reconciler: adopted}
					return root.SetupWithManager(t.Context(), mgr)
				},
				Steps: steps,
			})
		})
	}
}
