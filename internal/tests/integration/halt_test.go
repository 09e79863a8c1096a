// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// A reconcile that halts because a tracked object is missing is not retried. It runs again when the object is created.
func TestHalt_OnAMissingSecretIsNotPolled(t *testing.T) {
	e := newEnv(t)
	const name = "halts-on-a-missing-secret"
	var halted, found atomic.Int64
	e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		return (&reconcilers.ResourceReconciler[*fixture.Resource]{
			Name: name,
			Reconciler: reconcilers.Sequence[*fixture.Resource]{&reconcilers.SyncReconciler[*fixture.Resource]{
				Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
					return nil
				},
				Sync: func(ctx context.Context, resource *fixture.Resource) error {
					key := client.ObjectKey{Namespace: resource.Namespace, Name: "password"}
					err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &corev1.Secret{})
					switch {
					case apierrs.IsNotFound(err):
						resource.Status.Fields = map[string]string{"secret": "missing"}
						halted.Add(1)
						return reconcilers.ErrHaltSubReconcilers
					case err == nil:
						resource.Status.Fields = map[string]string{"secret": "found"}
						found.Add(1)
					}
					return err
				},
			}},
			Config: c,
		}).SetupWithManager(ctx, mgr)
	})
	counted := func(metric string, labels map[string]string) float64 {
		t.Helper()
		return apitest.Counted(t, metric, labels)
	}
	waits := func() float64 { return counted("trueup_halted_waits_total", map[string]string{"controller": name}) }

	e.Add(newResource("it", nil))
	e.Eventually(func() error {
		if waits() == 0 {
			return fmt.Errorf("%d halted requests, but none of them waits", halted.Load())
		}
		return nil
	})
	for round := range int64(3) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password"}}
		e.Add(secret)
		e.Eventually(func() error {
			if found.Load() <= round {
				return fmt.Errorf("no request for the creation of the Secret")
			}
			return nil
		})
		before := waits()
		e.Must(e.Delete(t.Context(), secret))
		e.Eventually(func() error {
			if waits() == before {
				return fmt.Errorf("no request for the deletion of the Secret")
			}
			return nil
		})
	}
	if got := counted("controller_runtime_reconcile_total", map[string]string{
		"controller": name, "result": "requeue",
	}); got != 0 {
		t.Errorf("%v requests were retried with back-off, want none", got)
	}
	if got := counted("trueup_halted_retries_total", map[string]string{"controller": name}); got != 0 {
		t.Errorf("%v halted requests were retried, want none", got)
	}
}
