// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Actor is another controller, for example the one of deployments. It sees what the API server has and its requests do
// not fail, but it can be late.
type Actor struct {
	// Name is for people. Required.
	Name string
	// For is the kind of the objects that the actor acts on. Required.
	For client.Object
	// Act is called with an object, some time after it has changed and as long as it exists, also while it is being
	// deleted, and also after a change that Act has made. What it has nothing to do about, it leaves alone. An error
	// without faults fails the scenario. Required.
	Act func(ctx context.Context, c client.Client, obj client.Object) error

	// collector is true for the garbage collector.
	collector bool
	// restores is true for one that has replicas be ready again after they were not.
	restores bool
}

// Progress is what becomes of a workload.
type Progress int

const (
	// BecomeReady has all replicas ready, and jobs complete.
	BecomeReady Progress = iota
	// Fail has no replica ready, and jobs fail.
	Fail
)

// GC is the garbage collector, which is always there. Naming it does no harm.
func GC() Actor { return Actor{collector: true} }

// actorOn returns an actor that gets objects of a type.
func actorOn[T client.Object](name string, kind T, act func(ctx context.Context, c client.Client, obj T) error) Actor {
	return Actor{Name: name, For: kind, Act: func(ctx context.Context, c client.Client, obj client.Object) error {
		typed, ok := obj.(T)
		if !ok || !obj.GetDeletionTimestamp().IsZero() {
			return nil
		}
		return act(ctx, c, typed)
	}}
}

// Deployments is an actor that has deployments make progress: all at once, without replica sets and pods.
func Deployments(progress Progress) Actor {
	a := actorOn("deployments", &appsv1.Deployment{}, func(
		ctx context.Context, c client.Client, obj *appsv1.Deployment,
	) error {
		before := obj.Status.DeepCopy()
		replicas := count(obj.Spec.Replicas)
		ready := readyOf(replicas, progress)
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
	})
	a.restores = progress == BecomeReady
	return a
}

// StatefulSets is an actor that has stateful sets make progress: all at once, without pods.
func StatefulSets(progress Progress) Actor {
	a := actorOn("statefulsets", &appsv1.StatefulSet{}, func(
		ctx context.Context, c client.Client, obj *appsv1.StatefulSet,
	) error {
		before := obj.Status.DeepCopy()
		replicas := count(obj.Spec.Replicas)
		ready := readyOf(replicas, progress)
		obj.Status.ObservedGeneration, obj.Status.Replicas, obj.Status.UpdatedReplicas, obj.Status.CurrentReplicas =
			obj.Generation, replicas, replicas, replicas
		obj.Status.ReadyReplicas, obj.Status.AvailableReplicas = ready, ready
		if equality.Semantic.DeepEqual(before, &obj.Status) {
			return nil
		}
		return c.Status().Update(ctx, obj)
	})
	a.restores = progress == BecomeReady
	return a
}

// Jobs is an actor that has jobs make progress: all at once, without pods.
func Jobs(progress Progress) Actor {
	return actorOn("jobs", &batchv1.Job{}, func(ctx context.Context, c client.Client, obj *batchv1.Job) error {
		if len(obj.Status.Conditions) > 0 || obj.Spec.Suspend != nil && *obj.Spec.Suspend {
			return nil
		}
		now := metav1.Now()
		obj.Status.StartTime = &now
		// Each end has a condition that announces it.
		ends, reason := []batchv1.JobConditionType{
			batchv1.JobSuccessCriteriaMet, batchv1.JobComplete,
		}, batchv1.JobReasonCompletionsReached
		if progress == Fail {
			obj.Status.Failed = 1
			ends, reason = []batchv1.JobConditionType{
				batchv1.JobFailureTarget, batchv1.JobFailed,
			}, batchv1.JobReasonBackoffLimitExceeded
		} else {
			obj.Status.Succeeded, obj.Status.CompletionTime = count(obj.Spec.Completions), &now
		}
		for _, end := range ends {
			obj.Status.Conditions = append(obj.Status.Conditions,
				batchv1.JobCondition{
					Type: end, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: now, LastProbeTime: now,
				})
		}
		return c.Status().Update(ctx, obj)
	})
}

// count is the number of replicas, or completions, which is 1 if nothing is said.
func count(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func readyOf(replicas int32, progress Progress) int32 {
	if progress == Fail {
		return 0
	}
	return replicas
}

// ended is true for jobs and pods that have come to their end.
func ended(obj client.Object) bool {
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

// hasStatus is true if there is anything in the status of an object.
func hasStatus(obj client.Object) bool {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return false
	}
	status, _ := content["status"].(map[string]any)
	return len(status) > 0
}
