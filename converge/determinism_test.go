// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/search"
)

// crowd creates several ConfigMaps at once, each in a goroutine of its own.
type crowd struct{ client.Client }

func (c *crowd) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, req.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	errs := make(chan error)
	for n := range 4 {
		go func() {
			configMap := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: fmt.Sprintf("%s-%d", req.Name, n)},
			}
			_, err := controllerutil.CreateOrUpdate(ctx, c.Client, configMap, func() error {
				configMap.Data = map[string]string{"value": string(secret.Data["value"])}
				return controllerutil.SetControllerReference(secret, configMap, scheme.Scheme)
			})
			select {
			case errs <- err:
			case <-ctx.Done():
			}
		}()
	}
	var failed error
	for range 4 {
		select {
		case err := <-errs:
			if err != nil && (failed == nil || err.Error() < failed.Error()) {
				failed = err
			}
		case <-ctx.Done():
			return reconcile.Result{}, ctx.Err()
		}
	}
	return reconcile.Result{}, failed
}

func crowdScenario() Scenario {
	return Scenario{
		Scheme: scheme.Scheme, For: &corev1.Secret{},
		Setup: func(mgr ctrl.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Owns(&corev1.ConfigMap{}).
				WithOptions(controller.Options{MaxConcurrentReconciles: 3}).Complete(&crowd{mgr.GetClient()})
		},
		Steps: Steps(Apply(newSecret("a")), Apply(newSecret("b")), Apply(newSecret("c")), Settle(),
			Change(newSecret("b"), func(s *corev1.Secret) {
				s.Data["value"] = []byte("2")
			}), Settle(), Delete(newSecret("a")), Settle()),
	}
}

// TestRunsAreDeterministic executes the same schedules repeatedly: their timelines are identical, for any number of
// processors, and although the order of maps changes.
func TestRunsAreDeterministic(t *testing.T) {
	times := 100
	if testing.Short() || raceDetector {
		times = 10
	}
	for name, s := range map[string]Scenario{
		"direct": copierScenario(true), "controller": controllerScenario(false), "crowd": crowdScenario(),
	} {
		t.Run(name, func(t *testing.T) {
			p, o := referred(t, s)
			schedules := []inject.Schedule{{}}
			for n := range uint64(5) {
				schedules = append(schedules, search.RandomSchedule(o.Points, 7, n))
			}
			first := timelines(t, p, schedules)
			if lines := strings.Count(first, "\n"); lines < 100 {
				t.Fatalf("only %d lines are compared", lines)
			}
			before := runtime.GOMAXPROCS(0)
			defer runtime.GOMAXPROCS(before)
			for n := range times {
				runtime.GOMAXPROCS(1 + n%2)
				again := timelines(t, mustPlanWith(t, s, p), schedules)
				if again != first {
					a, b := strings.Split(first, "\n"), strings.Split(again, "\n")
					at := 0
					for at < min(len(a), len(b)) && a[at] == b[at] {
						at++
					}
					t.Fatalf(
						"the %d. time it goes otherwise from line %d on:\n%s\ninstead of\n%s", n+2, at, b[min(at, len(b)-1)],
						a[min(at, len(a)-1)],
					)
				}
			}
		})
	}
}

// mustPlanWith returns a new plan that compares to the reference of another one.
func mustPlanWith(t *testing.T, s Scenario, other *plan) *plan {
	t.Helper()
	p := mustPlan(t, s)
	p.reference = other.reference
	return p
}

func timelines(t *testing.T, p *plan, schedules []inject.Schedule) string {
	t.Helper()
	var all []string
	for _, s := range schedules {
		log := &explain.Timeline{}
		o := p.execute(t, s, p.usual(), log)
		all = append(
			all, s.Encode(1), log.Full(),
			fmt.Sprint(o.Violations, o.Reconciles, o.Injected, slices.Clone(o.Points)),
		)
	}
	return strings.Join(all, "\n")
}
