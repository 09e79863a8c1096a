// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ActOnPod makes the progress of a Pod at once, as the scheduler and a kubelet do. Pods that always restart become
// ready, and others succeed. If they fail, Pods that always restart never become ready, and others fail. Pods with
// scheduling gates wait. Pods that are being deleted and have a grace period end.
func ActOnPod(ctx context.Context, c client.Client, pod *corev1.Pod, fails bool) error {
	switch {
	case len(pod.Spec.SchedulingGates) > 0:
		return nil
	case pod.DeletionTimestamp != nil:
		if grace := pod.DeletionGracePeriodSeconds; grace == nil || *grace == 0 {
			return nil // it waits for finalizers
		}
		return client.IgnoreNotFound(c.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	case Ended(pod):
		return nil
	}
	before := pod.Status.DeepCopy()
	runPod(pod, fails)
	if equality.Semantic.DeepEqual(before, &pod.Status) {
		return nil
	}
	return c.Status().Update(ctx, pod)
}

// runPod sets the status of a pod.
func runPod(pod *corev1.Pod, fails bool) {
	restarts := pod.Spec.RestartPolicy == "" || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways
	now, ready := metav1.Now(), corev1.ConditionFalse
	state := corev1.ContainerState{}
	switch {
	case restarts && !fails:
		pod.Status.Phase, ready = corev1.PodRunning, corev1.ConditionTrue
		state.Running = &corev1.ContainerStateRunning{StartedAt: now}
	case restarts:
		pod.Status.Phase = corev1.PodRunning
		state.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	case !fails:
		pod.Status.Phase = corev1.PodSucceeded
		state.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}
	default:
		pod.Status.Phase = corev1.PodFailed
		state.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", StartedAt: now, FinishedAt: now}
	}
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &now
	}
	setPodCondition(pod, corev1.PodScheduled, corev1.ConditionTrue)
	setPodCondition(pod, corev1.PodInitialized, corev1.ConditionTrue)
	setPodCondition(pod, corev1.ContainersReady, ready)
	setPodCondition(pod, corev1.PodReady, ready)
	current := pod.Status.ContainerStatuses
	if len(current) == len(pod.Spec.Containers) && samePhase(current[0].State, state) {
		return
	}
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: ready == corev1.ConditionTrue,
			Started: new(state.Running != nil), State: state,
		})
	}
}

// samePhase reports whether two states of a container are running, waiting or terminated alike.
func samePhase(a, b corev1.ContainerState) bool {
	return (a.Running != nil) == (b.Running != nil) && (a.Waiting != nil) == (b.Waiting != nil) &&
		(a.Terminated != nil) == (b.Terminated != nil)
}

// setPodCondition sets the status of a condition.
func setPodCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			if c.Status != status {
				c.Status, c.LastTransitionTime = status, metav1.Now()
			}
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: kind, Status: status, LastTransitionTime: metav1.Now(),
	})
}

// ActOnClaim binds a PersistentVolumeClaim at once, to a volume that does not exist as an object. The capacity of a
// claim is what it requests, also after it was resized.
func ActOnClaim(ctx context.Context, c client.Client, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName == "" {
		claim.Spec.VolumeName = "pvc-" + string(claim.UID)
		if err := c.Update(ctx, claim); err != nil {
			return err
		}
	}
	before := claim.Status.DeepCopy()
	claim.Status.Phase, claim.Status.AccessModes = corev1.ClaimBound, claim.Spec.AccessModes
	claim.Status.Capacity = corev1.ResourceList{
		corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
	}
	if equality.Semantic.DeepEqual(before, &claim.Status) {
		return nil
	}
	return c.Status().Update(ctx, claim)
}
