// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ActOnDeployment makes the progress of a Deployment at once, without ReplicaSets and Pods: all replicas become ready,
// or none.
func ActOnDeployment(ctx context.Context, c client.Client, obj *appsv1.Deployment, fails bool) error {
	before := obj.Status.DeepCopy()
	replicas := Count(obj.Spec.Replicas)
	ready := readyOf(replicas, fails)
	obj.Status.ObservedGeneration, obj.Status.Replicas, obj.Status.UpdatedReplicas = obj.Generation, replicas, replicas
	obj.Status.ReadyReplicas, obj.Status.AvailableReplicas, obj.Status.UnavailableReplicas = ready, ready, replicas-ready
	condition := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable",
	}
	if ready < replicas {
		condition.Status, condition.Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
	}
	if len(obj.Status.Conditions) == 1 && obj.Status.Conditions[0].Status == condition.Status {
		condition = obj.Status.Conditions[0]
	} else {
		condition.LastTransitionTime, condition.LastUpdateTime = metav1.Now(), metav1.Now()
	}
	obj.Status.Conditions = []appsv1.DeploymentCondition{condition}
	if equality.Semantic.DeepEqual(before, &obj.Status) {
		return nil
	}
	return c.Status().Update(ctx, obj)
}

// ActOnStatefulSetStatus makes the progress of a StatefulSet at once, without Pods: all replicas become ready, or none.
func ActOnStatefulSetStatus(ctx context.Context, c client.Client, obj *appsv1.StatefulSet, fails bool) error {
	before := obj.Status.DeepCopy()
	replicas := Count(obj.Spec.Replicas)
	ready := readyOf(replicas, fails)
	obj.Status.ObservedGeneration, obj.Status.Replicas, obj.Status.UpdatedReplicas, obj.Status.CurrentReplicas =
		obj.Generation, replicas, replicas, replicas
	obj.Status.ReadyReplicas, obj.Status.AvailableReplicas = ready, ready
	if equality.Semantic.DeepEqual(before, &obj.Status) {
		return nil
	}
	return c.Status().Update(ctx, obj)
}

// ActOnJob makes the progress of a Job at once, without Pods.
func ActOnJob(ctx context.Context, c client.Client, obj *batchv1.Job, fails bool) error {
	if len(obj.Status.Conditions) > 0 || obj.Spec.Suspend != nil && *obj.Spec.Suspend {
		return nil
	}
	now := metav1.Now()
	obj.Status.StartTime = &now
	// The API server requires a condition before each final one.
	ends, reason := []batchv1.JobConditionType{
		batchv1.JobSuccessCriteriaMet, batchv1.JobComplete,
	}, batchv1.JobReasonCompletionsReached
	if fails {
		obj.Status.Failed = 1
		ends, reason = []batchv1.JobConditionType{
			batchv1.JobFailureTarget, batchv1.JobFailed,
		}, batchv1.JobReasonBackoffLimitExceeded
	} else {
		obj.Status.Succeeded, obj.Status.CompletionTime = Count(obj.Spec.Completions), &now
	}
	for _, end := range ends {
		obj.Status.Conditions = append(obj.Status.Conditions,
			batchv1.JobCondition{
				Type: end, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: now, LastProbeTime: now,
			})
	}
	return c.Status().Update(ctx, obj)
}

func readyOf(replicas int32, fails bool) int32 {
	if fails {
		return 0
	}
	return replicas
}
