// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// TestRecreatingObjectManager proves that an immutable child is replaced when its content changes.
func TestRecreatingObjectManager(t *testing.T) {
	for name, manager := range map[string]func() reconcilers.ObjectManager[*corev1.ConfigMap]{
		"updated": func() reconcilers.ObjectManager[*corev1.ConfigMap] {
			return &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
				MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
					current.Data, current.Immutable = desired.Data, desired.Immutable
				},
			}
		},
		"applied": func() reconcilers.ObjectManager[*corev1.ConfigMap] {
			return &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{}
		},
	} {
		for guarded, allowStale := range map[string]bool{"guard": false, "stale reads": true} {
			t.Run(name+", "+guarded, func(t *testing.T) {
				prove(t, converge.Scenario{
					Scheme: scheme, For: &fixture.Resource{}, Steps: lives(),
					Setup: func(mgr ctrl.Manager) error {
						config := reconcilers.NewConfig(mgr, nil, time.Hour)
						config.AllowStaleReads = allowStale
						c := newChild(fixedName)
						c.MergeBeforeUpdate = nil
						c.ChildObjectManager = &reconcilers.RecreatingObjectManager[*corev1.ConfigMap]{Manager: manager()}
						desired := c.DesiredChild
						c.DesiredChild = func(ctx context.Context, resource *fixture.Resource) (*corev1.ConfigMap, error) {
							child, err := desired(ctx, resource)
							if child != nil {
								child.Immutable = new(true)
							}
							return child, err
						}
						root := &reconcilers.ResourceReconciler[*fixture.Resource]{Reconciler: c, Config: config}
						return root.SetupWithManager(t.Context(), mgr)
					},
				})
			})
		}
	}
}
