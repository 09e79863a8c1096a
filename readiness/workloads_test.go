// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/readiness"
)

// TestOf_Workloads compares the state and the message in the less common states of workloads.
func TestOf_Workloads(t *testing.T) {
	partition := func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr(int32(2))}
		s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 10}
		s.Status.UpdateRevision = "3"
	}
	replicaSet := func(all, labeled, available int32) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{
			ObjectMeta: second, Spec: appsv1.ReplicaSetSpec{Replicas: ptr(int32(2))},
			Status: appsv1.ReplicaSetStatus{
				ObservedGeneration: 2, Replicas: all, FullyLabeledReplicas: labeled, AvailableReplicas: available,
				Conditions: []appsv1.ReplicaSetCondition{
					{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: "no quota"},
				},
			},
		}
	}
	paused := deployment(3, appsv1.DeploymentStatus{})
	paused.Spec.Paused = true
	defaulted := deployment(3, appsv1.DeploymentStatus{})
	defaulted.Spec.Replicas = nil
	evicted := pod(corev1.PodFailed, func(s *corev1.PodStatus) { s.Reason = "Evicted" })
	changed := pod(corev1.PodRunning, func(s *corev1.PodStatus) { s.ObservedGeneration = 1 })
	changed.Generation = 2
	for name, tc := range map[string]struct {
		obj  client.Object
		want string
	}{
		"deployment is paused": {
			paused, "Progressing Paused: 0 of 3 replicas are updated, and the rollout is paused",
		},
		"deployment of the default size": {defaulted, "Progressing Updating: 0 of 1 replicas are updated"},
		"stateful set is not observed": {
			statefulSet(func(s *appsv1.StatefulSet) { s.Generation = 3 }),
			"Progressing NotObserved: generation 3 is not observed yet",
		},
		"stateful set with ordinals updates from a partition on": {
			statefulSet(func(s *appsv1.StatefulSet) { partition(s); s.Status.UpdatedReplicas = 0 }),
			"Progressing Updating: 0 of 1 replicas from the partition on are updated",
		},
		"stateful set with ordinals has updated all from a partition on": {
			statefulSet(func(s *appsv1.StatefulSet) { partition(s); s.Status.UpdatedReplicas = 1 }),
			"Ready Ready: 3 of 3 replicas are available",
		},
		"daemon set is not observed": {
			&appsv1.DaemonSet{ObjectMeta: second}, "Progressing NotObserved: generation 2 is not observed yet",
		},
		"replica set lacks labels": {
			replicaSet(2, 1, 2), "Progressing Updating: 1 of 2 replicas have the labels of the template",
		},
		"replica set is too large": {replicaSet(3, 3, 3), "Progressing Updating: 1 surplus replicas are still running"},
		"replica set is limited": {
			replicaSet(0, 0, 0), "Progressing Unavailable: 0 of 2 replicas are available: no quota",
		},
		"job is about to fail": {
			job(nil, batchv1.JobCondition{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}),
			"Progressing Running: the job has not completed yet",
		},
		"pod has changed": {changed, "Progressing NotObserved: generation 2 is not observed yet"},
		"pod was evicted": {evicted, "Failed Evicted: the pod has failed"},
		"pod pulls its image": {
			pod(corev1.PodPending, waiting("ContainerCreating")), "Progressing Pending: the pod is starting",
		},
	} {
		t.Run(name, func(t *testing.T) {
			typed, untyped := readiness.Of(tc.obj), readiness.Of(toUnstructured(t, tc.obj))
			got := string(typed.State) + " " + typed.Reason + ": " + typed.Message
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected readiness (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(typed, untyped); diff != "" {
				t.Errorf("an unstructured object differs (-typed +unstructured):\n%s", diff)
			}
		})
	}
}
