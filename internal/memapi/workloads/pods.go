// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podsOf returns the Pods that an object controls. Those that are being deleted are not included.
func podsOf(ctx context.Context, c client.Client, owner client.Object) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := c.List(ctx, list, client.InNamespace(owner.GetNamespace())); err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if pod := &list.Items[i]; pod.DeletionTimestamp == nil && metav1.IsControlledBy(pod, owner) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// createPod creates a Pod with a generated name.
func createPod(
	ctx context.Context, c client.Client, owner client.Object, kind schema.GroupVersionKind,
	template corev1.PodTemplateSpec, labels map[string]string,
) error {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.GenerateName = owner.GetNamespace(), "", owner.GetName()+"-"
	if pod.Labels == nil && len(labels) > 0 {
		pod.Labels = map[string]string{}
	}
	for name, value := range labels {
		pod.Labels[name] = value
	}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	return c.Create(ctx, pod)
}

// keepPods creates or deletes the Pods of an object until it has the wanted number of them that have not ended. It
// returns those that existed before.
func keepPods(
	ctx context.Context, c client.Client, owner client.Object, kind schema.GroupVersionKind,
	template corev1.PodTemplateSpec, labels map[string]string, wanted int,
) (pods []*corev1.Pod, err error) {
	all, err := podsOf(ctx, c, owner)
	if err != nil {
		return nil, err
	}
	for _, pod := range all {
		if !Ended(pod) {
			pods = append(pods, pod)
		}
	}
	for n := len(pods); n < wanted; n++ {
		if err := createPod(ctx, c, owner, kind, template, labels); err != nil {
			return pods, err
		}
	}
	for len(pods) > wanted {
		last := pods[len(pods)-1]
		pods = pods[:len(pods)-1]
		if err := client.IgnoreNotFound(c.Delete(ctx, last)); err != nil {
			return nil, err
		}
	}
	return pods, nil
}

func readyPods(pods []*corev1.Pod) (ready int32) {
	for _, pod := range pods {
		if isReady(pod) {
			ready++
		}
	}
	return ready
}

func actOnReplicaSet(ctx context.Context, c client.Client, set *appsv1.ReplicaSet) error {
	kind := appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	pods, err := keepPods(ctx, c, set, kind, set.Spec.Template, nil, int(Count(set.Spec.Replicas)))
	if err != nil {
		return err
	}
	before := set.Status.DeepCopy()
	set.Status.ObservedGeneration, set.Status.Replicas = set.Generation, int32(len(pods))
	set.Status.FullyLabeledReplicas = set.Status.Replicas
	set.Status.ReadyReplicas = readyPods(pods)
	set.Status.AvailableReplicas = set.Status.ReadyReplicas
	if equality.Semantic.DeepEqual(before, &set.Status) {
		return nil
	}
	return c.Status().Update(ctx, set)
}

// actOnDaemonSet runs one Pod, as in a cluster with one node. A Pod of an earlier template is deleted.
func actOnDaemonSet(ctx context.Context, c client.Client, set *appsv1.DaemonSet) error {
	hash, err := hashOf(set.Spec.Template)
	if err != nil {
		return err
	}
	old, err := podsOf(ctx, c, set)
	if err != nil {
		return err
	}
	for _, pod := range old {
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] != hash &&
			set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
			if err := client.IgnoreNotFound(c.Delete(ctx, pod)); err != nil {
				return err
			}
		}
	}
	kind := appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	labels := map[string]string{appsv1.ControllerRevisionHashLabelKey: hash}
	pods, err := keepPods(ctx, c, set, kind, set.Spec.Template, labels, 1)
	if err != nil {
		return err
	}
	before := set.Status.DeepCopy()
	ready := readyPods(pods)
	set.Status = appsv1.DaemonSetStatus{
		ObservedGeneration: set.Generation, DesiredNumberScheduled: 1, CurrentNumberScheduled: int32(len(pods)),
		UpdatedNumberScheduled: int32(len(pods)), NumberReady: ready, NumberAvailable: ready, NumberUnavailable: 1 - ready,
	}
	if equality.Semantic.DeepEqual(before, &set.Status) {
		return nil
	}
	return c.Status().Update(ctx, set)
}

// actOnJob runs Pods until enough of them have succeeded.
func actOnJob(ctx context.Context, c client.Client, job *batchv1.Job) error {
	if Ended(job) || job.Spec.Suspend != nil && *job.Spec.Suspend {
		return nil
	}
	all, err := podsOf(ctx, c, job)
	if err != nil {
		return err
	}
	var succeeded, failed int32
	for _, pod := range all {
		switch pod.Status.Phase {
		case corev1.PodSucceeded:
			succeeded++
		case corev1.PodFailed:
			failed++
		}
	}
	wanted := max(0, min(Count(job.Spec.Parallelism), Count(job.Spec.Completions)-succeeded))
	pods, err := keepPods(
		ctx, c, job, batchv1.SchemeGroupVersion.WithKind("Job"), job.Spec.Template, nil, int(wanted),
	)
	if err != nil {
		return err
	}
	before := job.Status.DeepCopy()
	now := metav1.Now()
	if job.Status.StartTime == nil {
		job.Status.StartTime = &now
	}
	job.Status.Active, job.Status.Succeeded, job.Status.Failed = int32(len(pods)), succeeded, failed
	job.Status.Ready = new(readyPods(pods))
	if succeeded >= Count(job.Spec.Completions) {
		job.Status.CompletionTime = &now
		// The API server requires a condition before the final one.
		for _, end := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: end, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonCompletionsReached, LastTransitionTime: now,
				LastProbeTime: now,
			})
		}
	}
	if equality.Semantic.DeepEqual(before, &job.Status) {
		return nil
	}
	return c.Status().Update(ctx, job)
}
