// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestTrackAndList(t *testing.T) {
	e := newEnv(t)
	var passes, found atomic.Int64
	e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		return (&reconcilers.ResourceReconciler[*fixture.Resource]{
			SkipStatusUpdate: true, // its events are triggers too
			Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
				Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
					return nil
				},
				Sync: func(ctx context.Context, resource *fixture.Resource) error {
					var list corev1.ConfigMapList
					err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, &list,
						client.InNamespace(resource.Namespace), client.MatchingLabels{"part-of": resource.Name})
					found.Store(int64(len(list.Items)))
					passes.Add(1)
					return err
				},
			},
			Config: c,
		}).SetupWithManager(ctx, mgr)
	})
	expect := func(what string, wantFound, wantPasses int64) {
		t.Helper()
		e.Eventually(func() error {
			if found.Load() != wantFound || passes.Load() < wantPasses {
				return fmt.Errorf(
					"%s: %d found after %d reconciles, want %d after %d", what, found.Load(), passes.Load(), wantFound, wantPasses,
				)
			}
			return nil
		})
		if got := passes.Load(); got != wantPasses {
			t.Errorf("%s: %d reconciles, want %d", what, got, wantPasses)
		}
	}
	labeled := func(name, value string) *corev1.ConfigMap {
		configMap := newConfigMap(name, nil)
		configMap.Labels = map[string]string{"part-of": value}
		return configMap
	}

	e.Add(newResource("it", nil))
	expect("at first", 0, 1)
	e.Add(labeled("no-part", "another"))
	part := labeled("part", "it")
	e.Add(part)
	expect("with a part", 1, 2)
	change(e, part, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"changed": ""} })
	expect("with a part that has changed", 1, 3)
	change(e, part, func(cm *corev1.ConfigMap) { cm.Labels["part-of"] = "another" })
	expect("with a part whose label was removed", 0, 4)
	change(e, part, func(cm *corev1.ConfigMap) { cm.Labels["part-of"] = "it" })
	expect("with a part whose label was added again", 1, 5)
	e.Must(e.Delete(t.Context(), part))
	expect("without", 0, 6)
}
