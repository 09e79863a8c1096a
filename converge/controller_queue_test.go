// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/fairqueue"
)

// TestQueuesOfControllers runs a controller that fails twice with its own rate limiter, and with its own queue, which
// is kept.
func TestQueuesOfControllers(t *testing.T) {
	newLimiter := func() workqueue.TypedRateLimiter[reconcile.Request] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Minute, time.Hour)
	}
	made := 0
	for _, tt := range []struct {
		name     string
		options  controller.Options
		wantMade bool
		want     time.Duration
	}{
		{"default", controller.Options{}, false, 15 * time.Millisecond},
		{"own rate limiter", controller.Options{RateLimiter: newLimiter()}, false, 3 * time.Minute},
		{
			"namespaces in turns",
			controller.Options{RateLimiter: newLimiter(), NewQueue: fairqueue.New},
			false,
			3 * time.Minute,
		},
		{"own queue", controller.Options{RateLimiter: newLimiter(), NewQueue: func(
			_ string, limiter workqueue.TypedRateLimiter[reconcile.Request],
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			made++
			return workqueue.NewTypedRateLimitingQueue(limiter)
		}}, true, 3 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			made = 0
			var starts []time.Time
			s := copierScenario(false)
			s.New, s.Owns = nil, nil
			s.Steps = Steps(Apply(newSecret("a")), Settle())
			s.Setup = func(mgr ctrl.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).WithOptions(tt.options).Complete(reconcile.Func(
					func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
						secret := &corev1.Secret{}
						if err := mgr.GetClient().Get(ctx, req.NamespacedName, secret); err != nil {
							return reconcile.Result{}, client.IgnoreNotFound(err)
						}
						if starts = append(starts, time.Now()); len(starts) < 3 {
							return reconcile.Result{}, errors.New("not yet")
						}
						return reconcile.Result{}, nil
					},
				))
			}
			p := mustPlan(t, s)
			if o := p.execute(t, nil, p.usual(), nil); len(o.Violations) > 0 {
				t.Fatal(o.Violations)
			}
			if (made > 0) != tt.wantMade {
				t.Errorf("%d queues made", made)
			}
			if len(starts) < 3 || starts[2].Sub(starts[0]) != tt.want {
				t.Errorf("started at %v, want the third %s after the first", starts, tt.want)
			}
		})
	}
}
