// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// createOnce creates a ConfigMap with a generated name if the cache has none.
func createOnce(ctx context.Context, parent *fixture.Resource) error {
	config, list := reconcilers.RetrieveConfigOrDie(ctx), &corev1.ConfigMapList{}
	if err := config.List(ctx, list, client.InNamespace(parent.Namespace)); err != nil || len(list.Items) > 0 {
		return err
	}
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, GenerateName: "made-"}}
	if err := controllerutil.SetControllerReference(parent, created, scheme); err != nil {
		return err
	}
	return config.Create(ctx, created)
}

// A reconciler that reads a stale cache creates an object with a generated name twice. Reconcilers wait for their
// caches, unless this is disabled.
func TestGate(t *testing.T) {
	scenario := func(allowStaleReads bool) converge.Scenario {
		return converge.Scenario{
			Scheme: scheme,
			For:    &fixture.Resource{},
			Setup: func(mgr ctrl.Manager) error {
				config := reconcilers.NewConfig(mgr, nil, time.Hour)
				config.AllowStaleReads = allowStaleReads
				root := &reconcilers.ResourceReconciler[*fixture.Resource]{
					Config: config, Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
						Sync: createOnce,
						Setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
							bldr.Owns(&corev1.ConfigMap{})
							return nil
						},
					},
				}
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
				t.Error("nothing was found, although the object is created again when the cache is late")
			case c.allowStaleReads && !strings.Contains(report.Failure.Replay, "lag-"):
				t.Errorf("found without a cache that is late:\n%v", report.Failure)
			}
		})
	}
}
