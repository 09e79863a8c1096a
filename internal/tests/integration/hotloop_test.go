// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/internal/engine/hotloop"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// hotLoops are reconcilers that never converge. Each counts its calls.
func hotLoops(calls *atomic.Int64) map[string]reconcilers.SubReconciler[*fixture.Resource] {
	return map[string]reconcilers.SubReconciler[*fixture.Resource]{
		"requeue": &reconcilers.SyncReconciler[*fixture.Resource]{
			SyncWithResult: func(context.Context, *fixture.Resource) (reconcilers.Result, error) {
				calls.Add(1)
				return reconcilers.Result{RequeueAfter: 1}, nil
			},
		},
		"child": &reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
			DesiredChild: func(_ context.Context, r *fixture.Resource) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "child"},
					Data:       map[string]string{"nonce": fmt.Sprint(calls.Add(1))},
				}, nil
			},
			MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
			ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
		},
		"status": &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(_ context.Context, r *fixture.Resource) error {
				calls.Add(1)
				r.Status.Fields = map[string]string{"time": time.Now().Format(time.RFC3339Nano)}
				return nil
			},
		},
		// Its own new generations are not progress.
		"spec": &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(ctx context.Context, r *fixture.Resource) error {
				changed := r.DeepCopy()
				changed.Spec.Fields = map[string]string{"nonce": fmt.Sprint(calls.Add(1))}
				err := reconcilers.RetrieveConfigOrDie(ctx).Update(ctx, changed)
				r.SetResourceVersion(changed.GetResourceVersion())
				return err
			},
		},
	}
}

func TestHotLoopsAreDelayed(t *testing.T) {
	for name, repeats := range map[string]string{
		"requeue": "ResourceResourceReconciler.SyncReconciler returns RequeueAfter 1ns",
		"child":   `ResourceResourceReconciler.ConfigMapChildReconciler updates ConfigMap %s/child: data[nonce]`,
		"status":  `ResourceResourceReconciler updates status of Resource %s/it: status.fields[time]`,
		"spec":    `ResourceResourceReconciler.SyncReconciler updates Resource %s/it: spec.fields[nonce]`,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			var calls atomic.Int64
			lines := e.startLogging(root(hotLoops(&calls)[name]))
			resource := newResource("it", nil)
			e.Add(resource)
			waitForHotLoop(e, lines, &calls)
			found := calls.Load()
			text := e.eventAbout(resource, "HotLoop")
			if want := strings.ReplaceAll(repeats, "%s", e.Namespace); !strings.HasPrefix(text, "Warning ") ||
				!strings.Contains(text, want) {
				t.Errorf("event: %s\nwant a warning that contains %s", text, want)
			}
			// The delay does not hold up users: a change by a user is reconciled at once, however long the delay is.
			e.Eventually(func() error {
				if calls.Load() < found+1 {
					return fmt.Errorf("it is no longer reconciled")
				}
				return nil
			})
			before := calls.Load()
			change(e, resource, func(r *fixture.Resource) { r.Spec.Fields = map[string]string{"new": "generation"} })
			e.Eventually(func() error {
				if calls.Load() < before+10 {
					return fmt.Errorf("%d reconciles after the change", calls.Load()-before)
				}
				return nil
			})
		})
	}
}

// waitForHotLoop waits until a hot loop is logged. It skips the test on a machine that is so busy that the loop is
// polling.
func waitForHotLoop(e *env, lines *logLines, calls *atomic.Int64) {
	e.Helper()
	const slowest = 2 * float64(hotloop.Limit*time.Second) / float64(hotloop.Window)
	started := time.Now()
	e.Eventually(func() error {
		line, err := lines.find("hot loop")
		if err == nil {
			e.Log(line)
			return nil
		}
		passed := time.Since(started)
		if speed := float64(calls.Load()) / passed.Seconds(); passed > 2*hotloop.Window && speed < slowest {
			e.Skipf("this machine makes only %.1f reconciles a second", speed)
		}
		return err
	})
}

// BenchmarkHotLoops counts the reconciles of a hot loop in five seconds, with and without the delay.
func BenchmarkHotLoops(b *testing.B) {
	for _, name := range []string{"requeue", "child", "status"} {
		for _, allow := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/allowed=%t", name, allow), func(b *testing.B) {
				for b.Loop() {
					e := newBenchmarkEnv(b)
					var calls atomic.Int64
					stop := e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
						c.AllowHotLoops = allow
						return root(hotLoops(&calls)[name])(ctx, mgr, c)
					})
					e.Add(newResource("it", nil))
					time.Sleep(5 * time.Second)
					stop()
					b.ReportMetric(float64(calls.Load()), "reconciles")
				}
			})
		}
	}
}
