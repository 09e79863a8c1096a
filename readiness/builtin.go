// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ofBuiltIn applies the rule of a built-in kind. It reports whether there is one.
func ofBuiltIn(obj runtime.Object) (Readiness, bool) {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return ofDeployment(obj), true
	case *appsv1.StatefulSet:
		return ofStatefulSet(obj), true
	case *appsv1.DaemonSet:
		return ofDaemonSet(obj), true
	case *appsv1.ReplicaSet:
		return ofReplicas(obj.Generation, obj.Spec.Replicas, replicas{
			observed: obj.Status.ObservedGeneration, all: obj.Status.Replicas, labeled: obj.Status.FullyLabeledReplicas,
			available: obj.Status.AvailableReplicas, problem: replicaSetProblem(obj.Status.Conditions),
		}), true
	case *corev1.ReplicationController:
		return ofReplicas(obj.Generation, obj.Spec.Replicas, replicas{
			observed: obj.Status.ObservedGeneration, all: obj.Status.Replicas, labeled: obj.Status.FullyLabeledReplicas,
			available: obj.Status.AvailableReplicas, problem: controllerProblem(obj.Status.Conditions),
		}), true
	case *corev1.Pod:
		return ofPod(obj), true
	case *batchv1.Job:
		return ofJob(obj), true
	case *corev1.PersistentVolumeClaim:
		return ofClaim(obj), true
	case *corev1.PersistentVolume:
		return ofVolume(obj), true
	case *corev1.Service:
		return ofService(obj), true
	case *corev1.Namespace:
		return ofNamespace(obj), true
	case *corev1.Node:
		return ofNode(obj), true
	case *policyv1.PodDisruptionBudget:
		return ofBudget(obj), true
	case *autoscalingv2.HorizontalPodAutoscaler:
		return ofAutoscaler(obj), true
	case *certificatesv1.CertificateSigningRequest:
		return ofSigningRequest(obj), true
	}
	return Readiness{}, false
}

// want returns a number of replicas with its default.
func want(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
