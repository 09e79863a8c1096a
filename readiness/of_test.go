// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/readiness"
)

// second is the metadata of an object of generation 2.
var second = metav1.ObjectMeta{Name: "a", Generation: 2}

func ptr[T any](value T) *T { return &value }

func podCondition(
	kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string,
) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

func deployment(replicas int32, status appsv1.DeploymentStatus) *appsv1.Deployment {
	status.ObservedGeneration = 2
	return &appsv1.Deployment{ObjectMeta: second, Spec: appsv1.DeploymentSpec{Replicas: &replicas}, Status: status}
}

func statefulSet(change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: second, Spec: appsv1.StatefulSetSpec{Replicas: ptr(int32(3))}}
	set.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3,
		CurrentRevision: "2", UpdateRevision: "2",
	}
	change(set)
	return set
}

func daemonSet(updated, available int32, strategy appsv1.DaemonSetUpdateStrategyType) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: second,
		Spec:       appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: strategy}},
		Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: updated, NumberAvailable: available,
		},
	}
}

func pod(phase corev1.PodPhase, change func(*corev1.PodStatus)) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
	p.Status.Phase = phase
	change(&p.Status)
	return p
}

func waiting(reason string) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "a", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}},
			{Name: "b", Ready: true},
		}
	}
}

func job(completions *int32, conditions ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{
		Spec: batchv1.JobSpec{Completions: completions}, Status: batchv1.JobStatus{Succeeded: 1, Conditions: conditions},
	}
}

func autoscaler(conditions ...autoscalingv2.HorizontalPodAutoscalerCondition) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: second,
		Status:     autoscalingv2.HorizontalPodAutoscalerStatus{ObservedGeneration: ptr(int64(2)), Conditions: conditions},
	}
}

func signingRequest(
	issued []byte, kinds ...certificatesv1.RequestConditionType,
) *certificatesv1.CertificateSigningRequest {
	r := &certificatesv1.CertificateSigningRequest{}
	r.Status.Certificate = issued
	for _, kind := range kinds {
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind})
	}
	return r
}

func definition(established, accepted apiextensionsv1.ConditionStatus) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{Status: apiextensionsv1.CustomResourceDefinitionStatus{
		Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.NamesAccepted, Status: accepted, Reason: "ListKindConflict", Message: "is taken"},
			{Type: apiextensionsv1.Established, Status: established, Reason: "Installing"},
		},
	}}
}

// TestOf_BuiltInKinds compares the state and the message for typed objects, and for the same objects unstructured.
func TestOf_BuiltInKinds(t *testing.T) {
	deleted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		DeletionTimestamp: ptr(metav1.NewTime(time.Unix(1, 0))), Finalizers: []string{"example.com/a"},
	}}
	noChange := func(*corev1.PodStatus) {}
	crashed := corev1.ConditionTrue
	for name, tc := range map[string]struct {
		obj  client.Object
		want string
	}{
		"exists":         {&corev1.ConfigMap{}, "Ready"},
		"role":           {&rbacv1.Role{}, "Ready"},
		"being deleted":  {deleted, "Terminating: is being deleted, and has the finalizers example.com/a"},
		"never observed": {&appsv1.Deployment{ObjectMeta: second}, "Progressing: generation 2 is not observed yet"},

		"deployment updates": {
			deployment(3, appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 1, AvailableReplicas: 3}),
			"Progressing: 1 of 3 replicas are updated",
		},
		"deployment ends old replicas": {
			deployment(3, appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 3, AvailableReplicas: 3}),
			"Progressing: 1 old replicas are still running",
		},
		"deployment starts": {
			deployment(3, appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 2}),
			"Progressing: 2 of 3 replicas are available",
		},
		"deployment is ready": {
			deployment(3, appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}),
			"Ready: 3 of 3 replicas are available",
		},
		"deployment of no replicas": {deployment(0, appsv1.DeploymentStatus{}), "Ready: 0 of 0 replicas are available"},
		"deployment lacks quota": {
			deployment(3, appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentReplicaFailure, Status: crashed, Message: "exceeded quota"},
			}}), "Progressing: 0 of 3 replicas are updated: exceeded quota",
		},
		"deployment is stuck": {
			deployment(3, appsv1.DeploymentStatus{UpdatedReplicas: 3, Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
			}}), "Failed: the rollout made no progress before its deadline: 3 of 3 replicas are updated and 0 are available",
		},

		"stateful set is ready": {statefulSet(func(*appsv1.StatefulSet) {}), "Ready: 3 of 3 replicas are available"},
		"stateful set updates": {statefulSet(func(s *appsv1.StatefulSet) {
			s.Status.UpdatedReplicas, s.Status.UpdateRevision = 1, "3"
		}), "Progressing: 1 of 3 replicas are updated"},
		"stateful set updates from a partition on": {statefulSet(func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr(int32(1))}
			s.Status.UpdatedReplicas, s.Status.UpdateRevision = 1, "3"
		}), "Progressing: 1 of 2 replicas from the partition on are updated"},
		"stateful set has updated all from a partition on": {statefulSet(func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr(int32(1))}
			s.Status.UpdatedReplicas, s.Status.UpdateRevision = 2, "3"
		}), "Ready: 3 of 3 replicas are available"},
		"stateful set is updated by hand": {statefulSet(func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
			s.Status.UpdatedReplicas, s.Status.UpdateRevision = 0, "3"
		}), "Ready: 3 of 3 replicas are available"},
		"stateful set starts": {
			statefulSet(func(s *appsv1.StatefulSet) { s.Status.AvailableReplicas = 2 }),
			"Progressing: 2 of 3 replicas are available",
		},
		"stateful set shrinks": {
			statefulSet(func(s *appsv1.StatefulSet) { s.Status.Replicas = 5 }),
			"Progressing: 2 surplus replicas are still running",
		},

		"daemon set updates": {daemonSet(1, 3, ""), "Progressing: 1 of 3 pods are updated"},
		"daemon set is updated by hand": {
			daemonSet(1, 3, appsv1.OnDeleteDaemonSetStrategyType), "Ready: 3 of 3 pods are available",
		},
		"daemon set starts": {daemonSet(3, 2, ""), "Progressing: 2 of 3 pods are available"},

		"replica set starts": {&appsv1.ReplicaSet{
			ObjectMeta: second, Status: appsv1.ReplicaSetStatus{ObservedGeneration: 2},
		}, "Progressing: 0 of 1 replicas are available"},
		"replica set is ready": {&appsv1.ReplicaSet{ObjectMeta: second, Status: appsv1.ReplicaSetStatus{
			ObservedGeneration: 2, Replicas: 1, FullyLabeledReplicas: 1, AvailableReplicas: 1,
		}}, "Ready: 1 of 1 replicas are available"},
		"replication controller is limited": {&corev1.ReplicationController{
			ObjectMeta: second, Status: corev1.ReplicationControllerStatus{
				ObservedGeneration: 2, Conditions: []corev1.ReplicationControllerCondition{
					{Type: corev1.ReplicationControllerReplicaFailure, Status: crashed, Message: "exceeded quota"},
				},
			},
		}, "Progressing: 0 of 1 replicas are available: exceeded quota"},

		"pod is new":       {pod("", noChange), "Progressing: the pod is starting"},
		"pod has finished": {pod(corev1.PodSucceeded, noChange), "Ready: the pod has completed"},
		"pod has failed": {
			pod(corev1.PodFailed, func(s *corev1.PodStatus) { s.Message = "node is shutting down" }),
			"Failed: node is shutting down",
		},
		"pod is not scheduled": {pod(corev1.PodPending, func(s *corev1.PodStatus) {
			s.Conditions = []corev1.PodCondition{
				podCondition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/3 nodes are available"),
			}
		}), "Progressing: the pod is not scheduled: 0/3 nodes are available"},
		"pod has no image": {
			pod(corev1.PodPending, waiting("ImagePullBackOff")), "Progressing: container a waits: ImagePullBackOff",
		},
		"pod crashes": {pod(corev1.PodRunning, waiting("CrashLoopBackOff")), "Failed: container a crashes repeatedly"},
		"pod starts":  {pod(corev1.PodRunning, waiting("")), "Progressing: 1 of 2 containers are ready"},
		"pod is ready": {pod(corev1.PodRunning, func(s *corev1.PodStatus) {
			s.Conditions = []corev1.PodCondition{podCondition(corev1.PodReady, corev1.ConditionTrue, "", "")}
		}), "Ready"},

		"job runs":       {job(nil), "Progressing: the job has not completed yet"},
		"job runs often": {job(ptr(int32(5))), "Progressing: 1 of 5 pods have succeeded"},
		"job is done": {
			job(nil, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}),
			"Ready: the job has completed",
		},
		"job has failed": {
			job(nil, batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "too many failures"}),
			"Failed: too many failures",
		},
		"job is suspended": {&batchv1.Job{Spec: batchv1.JobSpec{Suspend: ptr(true)}}, "Progressing: the job is suspended"},
		"cron job":         {&batchv1.CronJob{}, "Ready"},

		"claim waits": {&corev1.PersistentVolumeClaim{}, "Progressing: the claim is not bound"},
		"claim is bound": {&corev1.PersistentVolumeClaim{
			Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "v"},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		}, "Ready: the claim is bound to volume v"},
		"claim is lost": {
			&corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}},
			"Failed: the volume of the claim no longer exists",
		},
		"volume is available": {
			&corev1.PersistentVolume{Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}},
			"Ready: the volume is in phase Available",
		},
		"volume is new": {&corev1.PersistentVolume{}, "Progressing: the volume is not available yet"},
		"service":       {&corev1.Service{}, "Ready"},
		"load balancer": {
			&corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}},
			"Progressing: the load balancer has no address",
		},
		"namespace ends": {
			&corev1.Namespace{Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}},
			"Terminating: is being deleted",
		},
		"node is silent": {&corev1.Node{}, "Progressing: the node has not reported its state"},
		"budget": {&policyv1.PodDisruptionBudget{
			ObjectMeta: second,
			Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, CurrentHealthy: 1, DesiredHealthy: 2},
		}, "Progressing: 1 of 2 pods are healthy"},

		"autoscaler is new": {autoscaler(), "Progressing: the number of replicas was not computed yet"},
		"autoscaler lacks metrics": {autoscaler(autoscalingv2.HorizontalPodAutoscalerCondition{
			Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Message: "no metrics",
		}), "Progressing: no metrics"},
		"autoscaler is disabled": {autoscaler(autoscalingv2.HorizontalPodAutoscalerCondition{
			Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "ScalingDisabled",
		}), "Ready"},

		"certificate waits": {signingRequest(nil), "Progressing: the request is not approved"},
		"certificate is agreed": {
			signingRequest(nil, certificatesv1.CertificateApproved), "Progressing: the certificate is not issued yet",
		},
		"certificate is issued": {signingRequest([]byte("x"), certificatesv1.CertificateApproved), "Ready"},
		"certificate is denied": {signingRequest(nil, certificatesv1.CertificateDenied), "Failed: no certificate is issued"},

		"definition is new":         {definition("False", "True"), "Progressing: the API is not served yet"},
		"definition is established": {definition("True", "True"), "Ready"},
		"definition has no name":    {definition("False", "False"), "Failed: is taken"},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.obj.DeepCopyObject()
			typed, untyped := readiness.Of(tc.obj), readiness.Of(toUnstructured(t, tc.obj))
			if diff := cmp.Diff(tc.want, typed.String()); diff != "" {
				t.Errorf("unexpected readiness (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(typed, untyped); diff != "" {
				t.Errorf("an unstructured object differs (-typed +unstructured):\n%s", diff)
			}
			if typed.Reason == "" {
				t.Error("no reason")
			}
			if diff := cmp.Diff(before, tc.obj.DeepCopyObject()); diff != "" {
				t.Errorf("the object was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// toUnstructured returns an object as a client without its Go type reads it.
func toUnstructured(t *testing.T, obj client.Object) *unstructured.Unstructured {
	t.Helper()
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(kinds); err != nil {
			t.Fatal(err)
		}
	}
	gvk, err := apiutil.GVKForObject(obj, kinds)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u
}
