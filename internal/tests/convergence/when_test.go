// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// proveWhen proves a reconciler with the guard against stale reads, and without it.
func proveWhen(t *testing.T, steps []converge.Step, build func(env converge.Env) sub) {
	for name, allowStale := range map[string]bool{"guard": false, "stale reads": true} {
		t.Run(name, func(t *testing.T) {
			s := under(t, nil)
			s.Setup = func(mgr ctrl.Manager) error {
				config := reconcilers.NewConfig(mgr, nil, time.Hour)
				config.AllowStaleReads = allowStale
				root := &reconcilers.ResourceReconciler[*fixture.Resource]{
					Reconciler: build(converge.EnvOf(mgr)), Config: config,
				}
				return root.SetupWithManager(t.Context(), mgr)
			}
			if steps != nil {
				s.Steps = steps
			}
			prove(t, s)
		})
	}
}

func TestRetry(t *testing.T) {
	proveWhen(t, nil, func(env converge.Env) sub {
		return protected(reconcilers.Sequence[*fixture.Resource]{
			&reconcilers.Retry[*fixture.Resource]{Reconciler: publishes(env, "thing"), Continue: true},
			&reconcilers.Retry[*fixture.Resource]{Reconciler: publishes(env, "other")},
		})
	})
}

func TestTimeout(t *testing.T) {
	proveWhen(t, nil, func(env converge.Env) sub {
		return protected(&reconcilers.Timeout[*fixture.Resource]{After: time.Minute, Reconciler: publishes(env, "thing")})
	})
}

func TestRateLimit(t *testing.T) {
	proveWhen(t, nil, func(env converge.Env) sub {
		return protected(&reconcilers.RateLimit[*fixture.Resource]{
			Runs: 2, Interval: 5 * time.Second, Reconciler: publishes(env, "thing"),
		})
	})
}

func TestPeriodic(t *testing.T) {
	proveWhen(t, nil, func(env converge.Env) sub {
		return protected(&reconcilers.Periodic[*fixture.Resource]{Interval: time.Hour, Reconciler: publishes(env, "thing")})
	})
}

// A resource that was paused, that changes while it is paused, and that is deleted while it is paused ends like any
// other after it resumes. The status of a paused resource is behind its spec, so no step settles then.
func TestPaused(t *testing.T) {
	resource := newResource("one")
	pause := func(reason string) converge.Step {
		return converge.Change(resource, func(resource *fixture.Resource) {
			metav1.SetMetaDataAnnotation(&resource.ObjectMeta, reconcilers.AnnotationPaused, reason)
		})
	}
	steps := converge.Steps(
		converge.Apply(resource), converge.Settle(), pause("until Friday"), converge.Sleep(time.Minute),
		converge.Change(resource, setField("value", "two")), converge.Sleep(time.Minute), pause("false"), converge.Settle(),
		pause("true"), converge.Sleep(time.Minute), converge.Delete(resource), converge.Sleep(time.Minute),
		pause("false"), converge.Settle(),
	)
	for name, condition := range map[string]string{"silent": "", "with a condition": "Paused"} {
		t.Run(name, func(t *testing.T) {
			proveWhen(t, steps, func(env converge.Env) sub {
				return &reconcilers.Paused[*fixture.Resource]{
					Condition: condition, Reconciler: protected(publishes(env, "thing")),
				}
			})
		})
	}
}
