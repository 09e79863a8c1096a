// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/workloads"
)

// Actor is another controller, for example that of Deployments. It sees what the API server has. Its requests do not
// fail, but they can be late.
type Actor struct {
	// Name is the name in timelines. Required.
	Name string
	// For has the kind of the objects that the actor acts on. Required.
	For client.Object
	// Owns are kinds of objects that the actor creates. Their controller owner, an object of the kind For, is acted on
	// after each change of them.
	Owns []client.Object
	// Act is called with an object some time after each change of it, also after a change by Act itself, and while the
	// object is being deleted. It is also called after the deletion of an object of any kind, with the controller owner.
	// It must ignore objects that need no action. An error without faults fails the scenario. Required.
	Act func(ctx context.Context, c client.Client, obj client.Object) error

	// follows reports whether an object is also acted on after a change of another one.
	follows func(obj client.Object, kind schema.GroupKind, key client.ObjectKey) bool
	// collector is set for the garbage collector.
	collector bool
	// restores is set for an actor that makes an unavailable workload available again.
	restores bool
}

// Progress is the result of a workload.
type Progress int

const (
	// BecomeReady makes all replicas ready, and completes jobs.
	BecomeReady Progress = iota
	// Fail makes no replica ready, and fails jobs.
	Fail
)

// GC is the garbage collector, which always runs. Listing it has no effect.
func GC() Actor { return Actor{collector: true} }

// actorOn returns an actor for objects of a type.
func actorOn[T client.Object](name string, kind T, act func(ctx context.Context, c client.Client, obj T) error) Actor {
	return Actor{Name: name, For: kind, Act: func(ctx context.Context, c client.Client, obj client.Object) error {
		typed, ok := obj.(T)
		if !ok || !obj.GetDeletionTimestamp().IsZero() {
			return nil
		}
		return act(ctx, c, typed)
	}}
}

// Deployments is an actor that makes the progress of Deployments at once, without ReplicaSets and Pods.
func Deployments(progress Progress) Actor {
	a := actorOn("deployments", &appsv1.Deployment{}, func(
		ctx context.Context, c client.Client, obj *appsv1.Deployment,
	) error {
		before := obj.Status.DeepCopy()
		replicas := workloads.Count(obj.Spec.Replicas)
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

// StatefulSets is an actor that makes the progress of StatefulSets at once, without Pods.
func StatefulSets(progress Progress) Actor {
	a := actorOn("statefulsets", &appsv1.StatefulSet{}, func(
		ctx context.Context, c client.Client, obj *appsv1.StatefulSet,
	) error {
		before := obj.Status.DeepCopy()
		replicas := workloads.Count(obj.Spec.Replicas)
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

// Jobs is an actor that makes the progress of Jobs at once, without Pods.
func Jobs(progress Progress) Actor {
	return actorOn("jobs", &batchv1.Job{}, func(ctx context.Context, c client.Client, obj *batchv1.Job) error {
		if len(obj.Status.Conditions) > 0 || obj.Spec.Suspend != nil && *obj.Spec.Suspend {
			return nil
		}
		now := metav1.Now()
		obj.Status.StartTime = &now
		// The API server requires a condition before each final one.
		ends, reason := []batchv1.JobConditionType{
			batchv1.JobSuccessCriteriaMet, batchv1.JobComplete,
		}, batchv1.JobReasonCompletionsReached
		if progress == Fail {
			obj.Status.Failed = 1
			ends, reason = []batchv1.JobConditionType{
				batchv1.JobFailureTarget, batchv1.JobFailed,
			}, batchv1.JobReasonBackoffLimitExceeded
		} else {
			obj.Status.Succeeded, obj.Status.CompletionTime = workloads.Count(obj.Spec.Completions), &now
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

func readyOf(replicas int32, progress Progress) int32 {
	if progress == Fail {
		return 0
	}
	return replicas
}
