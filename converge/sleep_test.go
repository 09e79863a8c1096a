// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/explain"
)

// secretWorker reconciles a Secret.
type secretWorker func(ctx context.Context, c client.Client, secret *corev1.Secret) (reconcile.Result, error)

// inBothStyles calls a reconciler directly, and by a controller.
func inBothStyles(t *testing.T, do secretWorker, steps []Step, check func(*testing.T, Scenario)) {
	t.Helper()
	reconciler := func(c client.Client) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			secret := &corev1.Secret{}
			if err := c.Get(ctx, req.NamespacedName, secret); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return do(ctx, c, secret)
		})
	}
	direct := copierScenario(false)
	direct.New = func(e Env) reconcile.Reconciler { return reconciler(e.Client) }
	direct.Steps = steps
	controller := direct
	controller.New, controller.Owns = nil, nil
	controller.Setup = func(mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Owns(&corev1.ConfigMap{}).
			Complete(reconciler(mgr.GetClient()))
	}
	t.Run("direct", func(t *testing.T) { check(t, direct) })
	t.Run("controller", func(t *testing.T) { check(t, controller) })
}

// requeueAfter is a reconciler that only asks for another reconcile.
func requeueAfter(d time.Duration) secretWorker {
	return func(context.Context, client.Client, *corev1.Secret) (reconcile.Result, error) {
		return reconcile.Result{RequeueAfter: d}, nil
	}
}

// writeAfter writes the time in each reconcile, and asks for another one unless d is zero: the write is an event.
func writeAfter(d time.Duration) secretWorker {
	return func(ctx context.Context, c client.Client, secret *corev1.Secret) (reconcile.Result, error) {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "seen", time.Now().Format(time.RFC3339Nano))
		return reconcile.Result{RequeueAfter: d}, c.Update(ctx, secret)
	}
}

// TestHotLoopsDuringSleep are found soon, however long users sleep.
func TestHotLoopsDuringSleep(t *testing.T) {
	const often = "did not converge during a sleep: default/a was reconciled 201 times in "
	for _, tt := range []struct {
		name string
		do   secretWorker
		want string
	}{
		{"writes", writeAfter(0), often},
		{"writes and requeues", writeAfter(10 * time.Millisecond), often},
		{"requeues at once", requeueAfter(time.Nanosecond), "default/a was reconciled 50 times in 0s without any change"},
		{"requeues soon", requeueAfter(5 * time.Millisecond), "without any change, and is queued again"},
	} {
		for _, d := range []time.Duration{time.Second, 25 * time.Hour} {
			t.Run(tt.name+" for "+d.String(), func(t *testing.T) {
				steps := Steps(Apply(newSecret("a")), Sleep(max(d, 3*time.Second)), Settle())
				inBothStyles(t, tt.do, steps, func(t *testing.T, s Scenario) {
					p := mustPlan(t, s)
					log := &explain.Timeline{}
					o := p.execute(t, nil, p.usual(), log)
					v, failed := o.First()
					if !failed || v.Oracle != OracleQuiescence || !strings.Contains(v.Message, tt.want) {
						t.Errorf("got %v, want %s", o.Violations, tt.want)
					}
					if o.Reconciles > 250 {
						t.Errorf("found after %d reconciles", o.Reconciles)
					}
				})
			})
		}
	}
}

// TestPollingDuringSleep is allowed, and takes little real time.
func TestPollingDuringSleep(t *testing.T) {
	for _, interval := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Hour} {
		steps := Steps(Apply(newSecret("a")), Sleep(25*time.Hour), Settle())
		t.Run(interval.String(), func(t *testing.T) {
			inBothStyles(t, requeueAfter(interval), steps, func(t *testing.T, s Scenario) {
				p := mustPlan(t, s)
				before := time.Now()
				o := p.execute(t, nil, p.usual(), nil)
				if len(o.Violations) > 0 {
					t.Error(o.Violations)
				}
				if took := time.Since(before); took > time.Second {
					t.Errorf("%d reconciles in %s", o.Reconciles, took)
				}
			})
		})
	}
}

// TestSleepEndsInTime has users continue while a reconcile is running.
func TestSleepEndsInTime(t *testing.T) {
	write := func(ctx context.Context, c client.Client, secret *corev1.Secret) (reconcile.Result, error) {
		for secret.Annotations["stop"] == "" {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "seen", time.Now().Format(time.RFC3339Nano))
			if err := c.Update(ctx, secret); err != nil {
				return reconcile.Result{}, err
			}
		}
		return reconcile.Result{}, nil
	}
	var slept, woke time.Time
	steps := Steps(Apply(newSecret("a")), Do("look at the clock", func(context.Context, client.Client) error {
		slept = time.Now()
		return nil
	}), Sleep(300*time.Millisecond), Change(newSecret("a"), func(s *corev1.Secret) {
		woke = time.Now()
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, "stop", "now")
	}), Settle())
	inBothStyles(t, write, steps, func(t *testing.T, s Scenario) {
		p := mustPlan(t, s)
		if o := p.execute(t, nil, p.usual(), nil); len(o.Violations) > 0 {
			t.Error(o.Violations)
		}
		if woke.Sub(slept) != 300*time.Millisecond {
			t.Errorf("slept for %s", woke.Sub(slept))
		}
	})
}

// TestReconcilesWithoutEnd finds a reconcile that makes requests and never waits.
func TestReconcilesWithoutEnd(t *testing.T) {
	read := func(ctx context.Context, c client.Client, secret *corev1.Secret) (reconcile.Result, error) {
		for secret.Annotations["stop"] == "" {
			if err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
				return reconcile.Result{}, err
			}
		}
		return reconcile.Result{}, nil
	}
	for name, step := range map[string]Step{"sleep": Sleep(time.Second), "settle": Settle()} {
		t.Run(name, func(t *testing.T) {
			inBothStyles(t, read, Steps(Apply(newSecret("a")), step, Settle()), func(t *testing.T, s Scenario) {
				p := mustPlan(t, s)
				o := p.execute(t, nil, p.usual(), nil)
				if v, _ := o.First(); v.Cause != CauseHangs ||
					v.Message != "the reconcile of default/a does not return: it makes requests without end" {
					t.Errorf("got %v", o.Violations)
				}
			})
		})
	}
}
