// SPDX-License-Identifier: Apache-2.0

// Package workloads has the controllers of Kubernetes that a simulation needs: the controllers of Deployments,
// ReplicaSets, StatefulSets, DaemonSets, Jobs and PersistentVolumeClaims, and a kubelet that executes nothing. Each is
// a function that acts on one object once.
package workloads

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Handles reports whether [Act] acts on objects of a kind.
func Handles(kind schema.GroupVersionKind) bool {
	switch kind.GroupVersion() {
	case appsv1.SchemeGroupVersion:
		return kind.Kind == "Deployment" || kind.Kind == "ReplicaSet" || kind.Kind == "StatefulSet" ||
			kind.Kind == "DaemonSet"
	case batchv1.SchemeGroupVersion:
		return kind.Kind == "Job"
	case corev1.SchemeGroupVersion:
		return kind.Kind == "Pod" || kind.Kind == "PersistentVolumeClaim"
	}
	return false
}

// Act makes the next progress of an object, which it may change. It must be called after each change of the object and
// of the objects that it controls. Objects that are being deleted make no progress, except for Pods.
func Act(ctx context.Context, c client.Client, obj client.Object) error {
	if pod, ok := obj.(*corev1.Pod); ok {
		return ActOnPod(ctx, c, pod, false)
	}
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return actOnDeployment(ctx, c, obj)
	case *appsv1.ReplicaSet:
		return actOnReplicaSet(ctx, c, obj)
	case *appsv1.StatefulSet:
		return ActOnStatefulSet(ctx, c, obj)
	case *appsv1.DaemonSet:
		return actOnDaemonSet(ctx, c, obj)
	case *batchv1.Job:
		return actOnJob(ctx, c, obj)
	case *corev1.PersistentVolumeClaim:
		return ActOnClaim(ctx, c, obj)
	}
	return nil
}

// Count returns the number of replicas or completions. The default is 1.
func Count(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// Ended reports whether a Job or a Pod has finished.
func Ended(obj client.Object) bool {
	switch obj := obj.(type) {
	case *batchv1.Job:
		for _, c := range obj.Status.Conditions {
			if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
				return true
			}
		}
	case *corev1.Pod:
		return obj.Status.Phase == corev1.PodSucceeded || obj.Status.Phase == corev1.PodFailed
	}
	return false
}
