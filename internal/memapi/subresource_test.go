// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "a"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: newPod("").Spec.Containers},
			},
		},
	}
}

func TestScale(t *testing.T) {
	runRules(t, []rule{
		{"can be read", func(w *world) {
			obj := deployment()
			w.create(obj)
			var scale autoscalingv1.Scale
			w.must(w.c.SubResource("scale").Get(w.Context(), obj, &scale))
			w.equal("scale", autoscalingv1.Scale{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: "a", UID: obj.UID, ResourceVersion: obj.ResourceVersion,
					CreationTimestamp: obj.CreationTimestamp,
				},
				Spec: autoscalingv1.ScaleSpec{Replicas: 2}, Status: autoscalingv1.ScaleStatus{Selector: "app=a"},
			}, scale)
		}},
		{"can be written", func(w *world) {
			obj := deployment()
			w.create(obj)
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
			w.must(w.c.SubResource("scale").Update(w.Context(), obj, client.WithSubResourceBody(scale)))
			w.equal("version", "3", scale.ResourceVersion)
			got := w.stored(obj).(*appsv1.Deployment)
			w.equal("replicas", int32(5), *got.Spec.Replicas)
			w.equal("generation", int64(2), got.Generation)
		}},
		{"can be patched", func(w *world) {
			obj := deployment()
			w.create(obj)
			scale := &unstructured.Unstructured{}
			w.must(
				w.c.SubResource("scale").Patch(
					w.Context(), obj, mergePatch(`{"spec":{"replicas":3}}`), client.WithSubResourceBody(scale),
				),
			)
			w.equal("replicas", int32(3), *w.stored(obj).(*appsv1.Deployment).Spec.Replicas)
			w.equal("kind", "Scale", scale.GetKind())
		}},
		{"is not negative", func(w *world) {
			obj := deployment()
			w.create(obj)
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: -1}}
			w.wantError(w.c.SubResource("scale").Update(w.Context(), obj, client.WithSubResourceBody(scale)), 422,
				metav1.StatusReasonInvalid,
				`Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`)
		}},
		{"from an older version conflicts", func(w *world) {
			obj := deployment()
			w.create(obj)
			scale := &autoscalingv1.Scale{
				ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}, Spec: autoscalingv1.ScaleSpec{Replicas: 5},
			}
			w.wantError(w.c.SubResource("scale").Update(w.Context(), obj, client.WithSubResourceBody(scale)), 409,
				metav1.StatusReasonConflict,
				`Operation cannot be fulfilled on deployments.apps "a": `+stale)
		}},
		{"of a kind that has none", func(w *world) {
			w.wantError(
				w.c.SubResource("scale").Get(w.Context(), widget("a"), &autoscalingv1.Scale{}), 404, metav1.StatusReasonNotFound,
				`widgets.example.org "a" not found`,
			)
		}},
		{"cannot be created", func(w *world) {
			w.wantError(w.c.SubResource("scale").Create(w.Context(), deployment(), &autoscalingv1.Scale{}), 405,
				metav1.StatusReasonMethodNotAllowed,
				"the server does not allow this method on the requested resource")
		}},
	})
}

func TestEviction(t *testing.T) {
	running := func(w *world) *corev1.Pod {
		pod := newPod("a")
		pod.Labels = map[string]string{"app": "a"}
		w.create(pod)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		w.must(w.c.Status().Update(w.Context(), pod))
		return pod
	}
	budget := func(w *world, allowed int32) *policyv1.PodDisruptionBudget {
		obj := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
			},
		}
		w.create(obj)
		obj.Status = policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: obj.Generation, DisruptionsAllowed: allowed, CurrentHealthy: 1, DesiredHealthy: 1,
			ExpectedPods: 1,
		}
		w.must(w.c.Status().Update(w.Context(), obj))
		return obj
	}
	runRules(t, []rule{
		{"deletes a pod and sets the reason", func(w *world) {
			pod := running(w)
			eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{}}
			w.must(w.c.SubResource("eviction").Create(w.Context(), pod, eviction))
			w.equal("answer", &policyv1.Eviction{}, eviction)
			got := w.stored(pod).(*corev1.Pod)
			w.equal("grace", int64(30), *got.DeletionGracePeriodSeconds)
			w.equal("condition", corev1.DisruptionTarget, got.Status.Conditions[1].Type)
		}},
		{"takes from a budget", func(w *world) {
			obj := budget(w, 1)
			pod := running(w)
			w.must(w.c.SubResource("eviction").Create(w.Context(), pod, &policyv1.Eviction{}))
			w.equal("left", int32(0), w.stored(obj).(*policyv1.PodDisruptionBudget).Status.DisruptionsAllowed)
		}},
		{"is refused when a budget allows no disruption", func(w *world) {
			budget(w, 0)
			pod := running(w)
			before := w.Version()
			err := w.c.SubResource("eviction").Create(w.Context(), pod, &policyv1.Eviction{})
			w.wantError(
				err, 429, metav1.StatusReasonTooManyRequests, "Cannot evict pod as it would violate the pod's disruption budget.",
			)
			w.wantChanges(before)
		}},
		{"of a missing object", func(w *world) {
			w.wantError(
				w.c.SubResource("eviction").Create(w.Context(), newPod("a"), &policyv1.Eviction{}), 404,
				metav1.StatusReasonNotFound, `pods "a" not found`,
			)
		}},
	})
}
