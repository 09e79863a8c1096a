// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// ofDeployment follows `kubectl rollout status`.
func ofDeployment(d *appsv1.Deployment) Readiness {
	status, want := d.Status, want(d.Spec.Replicas)
	if r, ok := observed(d.Generation, status.ObservedGeneration); !ok {
		return r
	}
	problem := ""
	for _, c := range status.Conditions {
		switch {
		case c.Type == appsv1.DeploymentProgressing && c.Reason == ReasonProgressDeadlineExceeded:
			return failed(c.Reason, fmt.Sprintf(
				"the rollout made no progress before its deadline: %d of %d replicas are updated and %d are available",
				status.UpdatedReplicas, want, status.AvailableReplicas,
			))
		case c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue:
			problem = c.Message
		}
	}
	updated, available := status.UpdatedReplicas, status.AvailableReplicas
	switch {
	case updated < want && d.Spec.Paused:
		return progressing("Paused", "%d of %d replicas are updated, and the rollout is paused", updated, want)
	case updated < want:
		return progressing(ReasonUpdating, "%d of %d replicas are updated%s", updated, want, because(problem))
	case status.Replicas > updated:
		return progressing(ReasonUpdating, "%d old replicas are still running", status.Replicas-updated)
	case available < want:
		return progressing(ReasonUnavailable, "%d of %d replicas are available%s", available, want, because(problem))
	}
	return ready("%d of %d replicas are available", available, want)
}

func because(problem string) string {
	if problem == "" {
		return ""
	}
	return ": " + problem
}

// ofStatefulSet follows `kubectl rollout status`, also for partitions. That command refuses the update strategy
// OnDelete. Here pods of any revision count then. As for Deployments, pods count when they are available, and no pods
// may exist beyond the replicas.
func ofStatefulSet(s *appsv1.StatefulSet) Readiness {
	status, want := s.Status, want(s.Spec.Replicas)
	if r, ok := observed(s.Generation, status.ObservedGeneration); !ok {
		return r
	}
	switch strategy := s.Spec.UpdateStrategy; {
	case strategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
	case strategy.RollingUpdate != nil && strategy.RollingUpdate.Partition != nil && *strategy.RollingUpdate.Partition > 0:
		// The partition counts replicas. It is not an ordinal: spec.ordinals.start does not change it.
		needed := max(want-*strategy.RollingUpdate.Partition, 0)
		if status.UpdatedReplicas < needed {
			return progressing(ReasonUpdating, "%d of %d replicas from the partition on are updated",
				status.UpdatedReplicas, needed)
		}
	case status.UpdateRevision != status.CurrentRevision, status.UpdatedReplicas < want:
		return progressing(ReasonUpdating, "%d of %d replicas are updated", status.UpdatedReplicas, want)
	}
	switch {
	case status.AvailableReplicas < want:
		return progressing(ReasonUnavailable, "%d of %d replicas are available", status.AvailableReplicas, want)
	case status.Replicas > want:
		return progressing(ReasonUpdating, "%d surplus replicas are still running", status.Replicas-want)
	}
	return ready("%d of %d replicas are available", status.AvailableReplicas, want)
}

// ofDaemonSet follows `kubectl rollout status`. That command refuses the update strategy OnDelete. Here pods of any
// template count then.
func ofDaemonSet(d *appsv1.DaemonSet) Readiness {
	status := d.Status
	if r, ok := observed(d.Generation, status.ObservedGeneration); !ok {
		return r
	}
	want, updated, available := status.DesiredNumberScheduled, status.UpdatedNumberScheduled, status.NumberAvailable
	switch {
	case updated < want && d.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType:
		return progressing(ReasonUpdating, "%d of %d pods are updated", updated, want)
	case available < want:
		return progressing(ReasonUnavailable, "%d of %d pods are available", available, want)
	}
	return ready("%d of %d pods are available", available, want)
}

// replicas is the status of a ReplicaSet or a ReplicationController.
type replicas struct {
	observed                int64
	all, labeled, available int32
	problem                 string
}

// ofReplicas follows kstatus.
func ofReplicas(generation int64, specified *int32, status replicas) Readiness {
	want := want(specified)
	if r, ok := observed(generation, status.observed); !ok {
		return r
	}
	switch {
	case status.labeled < want && status.all >= want:
		return progressing(ReasonUpdating, "%d of %d replicas have the labels of the template", status.labeled, want)
	case status.available < want:
		return progressing(ReasonUnavailable, "%d of %d replicas are available%s",
			status.available, want, because(status.problem))
	case status.all > want:
		return progressing(ReasonUpdating, "%d surplus replicas are still running", status.all-want)
	}
	return ready("%d of %d replicas are available", status.available, want)
}

func replicaSetProblem(conditions []appsv1.ReplicaSetCondition) string {
	for _, c := range conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

func controllerProblem(conditions []corev1.ReplicationControllerCondition) string {
	for _, c := range conditions {
		if c.Type == corev1.ReplicationControllerReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}
