// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// autoscaledScenario has a reconciler that creates a StatefulSet and an autoscaler for it. If it resets the replicas,
// it fights with the autoscaler.
func autoscaledScenario(resets bool) Scenario {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
		hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = new(int32(2)), 4
		hpa.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{
			APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db",
		}
		set := newStatefulSetOf(1, "db:1")
		for _, child := range []client.Object{set, hpa} {
			if err := controllerutil.SetControllerReference(secret, child, scheme.Scheme); err != nil {
				return reconcile.Result{}, err
			}
			found := child.DeepCopyObject().(client.Object)
			err := e.Client.Get(ctx, client.ObjectKeyFromObject(child), found)
			if client.IgnoreNotFound(err) != nil {
				return reconcile.Result{}, err
			}
			if err != nil {
				if err := e.Client.Create(ctx, child); err != nil {
					return reconcile.Result{}, err
				}
			}
			if set, ok := found.(*appsv1.StatefulSet); ok && err == nil && resets && *set.Spec.Replicas != 1 {
				set.Spec.Replicas = new(int32(1))
				if err := e.Client.Update(ctx, set); err != nil {
					return reconcile.Result{}, err
				}
			}
		}
		return reconcile.Result{}, nil
	})
	s.Owns = []client.Object{&appsv1.StatefulSet{}, &autoscalingv2.HorizontalPodAutoscaler{}}
	s.World = []Actor{
		StatefulSets(BecomeReady),
		HorizontalPodAutoscalers(func(*autoscalingv2.HorizontalPodAutoscaler) int32 { return 7 }),
	}
	s.Steps = Lifecycle(newSecret("a"))
	return s
}

func TestHorizontalPodAutoscalers(t *testing.T) {
	p := mustPlan(t, autoscaledScenario(false))
	o := p.execute(t, nil, p.usual(), nil)
	if len(o.Violations) > 0 {
		t.Fatal(o.Violations)
	}
	hpa := onlyObject[*autoscalingv2.HorizontalPodAutoscaler](t, o.Settled[0])
	set := onlyObject[*appsv1.StatefulSet](t, o.Settled[0])
	if *set.Spec.Replicas != 4 || hpa.Status.DesiredReplicas != 4 || hpa.Status.CurrentReplicas != 4 {
		t.Errorf("%d replicas, status %+v, want the maximum of 4", *set.Spec.Replicas, hpa.Status)
	}
	for _, resets := range []bool{false, true} {
		report := mustCheck(t, autoscaledScenario(resets), Options{Seed: 1})
		if f := report.Failure; resets != (f != nil) || f != nil && f.Violation.Oracle != OracleQuiescence {
			t.Errorf("the reconciler resets the replicas: %t, got %v", resets, f)
		}
	}
}
