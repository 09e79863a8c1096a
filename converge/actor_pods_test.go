// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/state"
)

// TestPods checks the progress that the actor makes.
func TestPods(t *testing.T) {
	for _, tt := range []struct {
		policy   corev1.RestartPolicy
		progress Progress
		gated    bool
		phase    corev1.PodPhase
		ready    bool
	}{
		{corev1.RestartPolicyAlways, BecomeReady, false, corev1.PodRunning, true},
		{corev1.RestartPolicyAlways, Fail, false, corev1.PodRunning, false},
		{corev1.RestartPolicyNever, BecomeReady, false, corev1.PodSucceeded, false},
		{corev1.RestartPolicyOnFailure, Fail, false, corev1.PodFailed, false},
		{corev1.RestartPolicyAlways, BecomeReady, true, corev1.PodPending, false},
	} {
		t.Run(fmt.Sprint(tt.policy, tt.progress, tt.gated), func(t *testing.T) {
			s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name},
					Spec: corev1.PodSpec{
						RestartPolicy: tt.policy, Containers: []corev1.Container{{Name: "c", Image: "i"}}, NodeName: "node",
					},
				}
				if tt.gated {
					pod.Spec.NodeName, pod.Spec.SchedulingGates = "", []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
				}
				if err := controllerutil.SetControllerReference(secret, pod, e.Scheme); err != nil {
					return reconcile.Result{}, err
				}
				err := e.Client.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{})
				if client.IgnoreNotFound(err) != nil || err == nil {
					return reconcile.Result{}, err
				}
				return reconcile.Result{}, e.Client.Create(ctx, pod)
			})
			s.Owns, s.World = []client.Object{&corev1.Pod{}}, []Actor{Pods(tt.progress)}
			s.Steps = Lifecycle(newSecret("a"))
			p := mustPlan(t, s)
			o := p.execute(t, nil, p.usual(), nil)
			if len(o.Violations) > 0 {
				t.Fatal(o.Violations)
			}
			pod := onlyObject[*corev1.Pod](t, o.Settled[0])
			ready := false
			for _, c := range pod.Status.Conditions {
				ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}
			if pod.Status.Phase != tt.phase || ready != tt.ready {
				t.Errorf("phase %s, ready %t, want %s, %t", pod.Status.Phase, ready, tt.phase, tt.ready)
			}
			Run(t, s)
		})
	}
}

// onlyObject returns the only object of a type in a state.
func onlyObject[T client.Object](t *testing.T, s *state.Snapshot) T {
	t.Helper()
	var found []T
	for _, objects := range s.Objects {
		for _, obj := range objects {
			if typed, ok := obj.(T); ok {
				found = append(found, typed)
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects, want 1", len(found))
	}
	return found[0]
}

// TestPersistentVolumeClaims binds a claim, and resizes it.
func TestPersistentVolumeClaims(t *testing.T) {
	s := secretScenario(func(context.Context, Env, *corev1.Secret) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	})
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
	s.World = []Actor{PersistentVolumeClaims()}
	s.Steps = Steps(Apply(claim), Settle(), Change(claim, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	}), Settle())
	p := mustPlan(t, s)
	o := p.execute(t, nil, p.usual(), nil)
	if len(o.Violations) > 0 {
		t.Fatal(o.Violations)
	}
	for i, want := range []string{"1Gi", "2Gi"} {
		bound := onlyObject[*corev1.PersistentVolumeClaim](t, o.Settled[i])
		if got := bound.Status.Capacity.Storage().String(); bound.Status.Phase != corev1.ClaimBound || got != want {
			t.Errorf("Settle %d: phase %s, capacity %s, want Bound, %s", i+1, bound.Status.Phase, got, want)
		}
	}
}
