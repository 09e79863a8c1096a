// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// TestIdleResourcesKeepTheirReferences changes a tracked object after the tracked reference would have expired: after
// twice the sync period that NewConfig got, which is less than the resync period of the cache.
func TestIdleResourcesKeepTheirReferences(t *testing.T) {
	for name, period := range map[string]time.Duration{"short": time.Millisecond, "none": 0} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Add(newConfigMap("settings", map[string]string{"v": "1"}))
			var config reconcilers.Config
			e.start(func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
				config = reconcilers.NewConfig(mgr, nil, period)
				return (&reconcilers.ResourceReconciler[*fixture.Resource]{
					Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
						Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
							bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
							return nil
						},
						Sync: func(ctx context.Context, resource *fixture.Resource) error {
							settings := &corev1.ConfigMap{}
							key := types.NamespacedName{Namespace: resource.Namespace, Name: "settings"}
							err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, settings)
							resource.Status.Fields = settings.Data
							return err
						},
					},
					Config: config,
				}).SetupWithManager(ctx, mgr)
			})
			resource := newResource("it", nil)
			e.Add(resource)
			follows := func(value string) {
				t.Helper()
				until(e, resource, func(r *fixture.Resource) error {
					return different("the value in the status", value, r.Status.Fields["v"])
				})
			}
			follows("1")
			outside := newConfigMap("outside", nil)
			outside.Namespace = e.Namespace
			e.Must(config.Tracker.TrackObject(outside, newResource("outside", nil)))
			e.Eventually(func() error { // until the lease has ended
				observers, err := config.Tracker.GetObservers(outside)
				if err == nil && period > 0 && len(observers) > 0 {
					err = errors.New("a reference that was added outside of a reconcile has not expired")
				}
				return err
			})
			settings := newConfigMap("settings", nil)
			settings.Namespace = e.Namespace
			change(e, settings, func(m *corev1.ConfigMap) { m.Data = map[string]string{"v": "2"} })
			follows("2")
		})
	}
}
