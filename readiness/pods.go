// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// ofPod follows kstatus: a pod is ready if its condition Ready is True, or if it has completed. A container that
// crashes repeatedly is a failure.
func ofPod(p *corev1.Pod) Readiness {
	if r, ok := observed(p.Generation, p.Status.ObservedGeneration); !ok && p.Status.ObservedGeneration > 0 {
		return r // older clusters do not set it for pods
	}
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return ready("the pod has completed")
	case corev1.PodFailed:
		return failed(p.Status.Reason, orElse(p.Status.Message, "the pod has failed"))
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return ready("")
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			return progressing(orElse(c.Reason, ReasonPending), "the pod is not scheduled%s", because(c.Message))
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		waiting := c.State.Waiting
		switch {
		case c.Ready || waiting == nil || waiting.Reason == "":
		case waiting.Reason == "CrashLoopBackOff":
			return failed(waiting.Reason, fmt.Sprintf("container %s crashes repeatedly", c.Name))
		case waiting.Reason != "PodInitializing" && waiting.Reason != "ContainerCreating":
			return progressing(waiting.Reason, "container %s waits: %s", c.Name, waiting.Reason)
		}
	}
	if p.Status.Phase == corev1.PodRunning {
		count := 0
		for _, c := range p.Status.ContainerStatuses {
			if c.Ready {
				count++
			}
		}
		return progressing(ReasonUnavailable, "%d of %d containers are ready", count, len(p.Spec.Containers))
	}
	return progressing(ReasonPending, "the pod is starting")
}

// ofJob follows `kubectl wait --for=condition=Complete`: a Job is ready when it has completed. (For kstatus, a Job is
// ready as soon as it has started.)
func ofJob(j *batchv1.Job) Readiness {
	suspended := j.Spec.Suspend != nil && *j.Spec.Suspend
	for _, c := range j.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return ready("the job has completed")
		case c.Type == batchv1.JobFailed:
			return failed(c.Reason, orElse(c.Message, "the job has failed"))
		}
	}
	switch completions := j.Spec.Completions; {
	case suspended:
		return progressing("Suspended", "the job is suspended")
	case completions != nil && *completions > 1:
		return progressing("Running", "%d of %d pods have succeeded", j.Status.Succeeded, *completions)
	}
	return progressing("Running", "the job has not completed yet")
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
