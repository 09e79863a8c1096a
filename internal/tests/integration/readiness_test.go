// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/readiness"
)

// untilReadiness waits until an object has a state and a message.
func untilReadiness[T client.Object](e *env, obj T, want string) {
	e.Helper()
	until(e, obj, func(obj T) error {
		if got := readiness.Of(obj).String(); got != want {
			return fmt.Errorf("readiness is %q, want %q", got, want)
		}
		return nil
	})
}

// readinessGate keeps a pod that has it from being ready until runPods opens it.
const readinessGate = "fixture.trueup.dev/open"

// The controllers of Kubernetes write the status. The test decides when the pods are ready.
func TestReadiness(t *testing.T) {
	e := newEnv(t)
	replicas, labels := int32(1), map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:     []corev1.Container{{Name: "web", Image: "nginx"}},
					ReadinessGates: []corev1.PodReadinessGate{{ConditionType: readinessGate}},
				},
			},
		},
	}
	e.Add(deployment)
	untilReadiness(e, deployment, "Progressing: 0 of 1 replicas are available")
	runPods(e, labels)
	untilReadiness(e, deployment, "Ready: 1 of 1 replicas are available")
	change(e, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:2" })
	if readiness.Of(deployment).IsReady() {
		t.Error("the Deployment is ready right after a change of its template")
	}
	untilReadiness(e, deployment, "Progressing: 1 old replicas are still running")

	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
	e.Add(claim)
	if got := readiness.Of(claim).String(); got != "Progressing: the claim is not bound" {
		t.Errorf("readiness of a new claim is %q", got)
	}
	until(e, claim, func(claim *corev1.PersistentVolumeClaim) error {
		if r := readiness.Of(claim); !r.IsReady() {
			return fmt.Errorf("readiness is %v", r)
		}
		return nil
	})

	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	definition.SetName("resources." + fixture.GroupVersion.Group)
	until(e, definition, func(obj *unstructured.Unstructured) error {
		if r := readiness.Of(obj); !r.IsReady() {
			return fmt.Errorf("readiness is %v", r)
		}
		return nil
	})
}

// runPods opens the readiness gate of the pods with the labels.
func runPods(e *env, labels map[string]string) {
	e.Helper()
	pods := &corev1.PodList{}
	e.Must(e.List(e.Context(), pods, client.InNamespace(e.Namespace), client.MatchingLabels(labels)))
	if len(pods.Items) == 0 {
		e.Fatal("no pods exist")
	}
	for i := range pods.Items {
		e.Must(e.Status().Patch(e.Context(), &pods.Items[i], client.RawPatch(types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"`+readinessGate+`","status":"True"}]}}`))))
	}
}
