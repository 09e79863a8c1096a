// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// workloadActor returns an actor that makes the progress of a type of workloads.
func workloadActor[T client.Object](
	name string, kind T, progress Progress, act func(ctx context.Context, c client.Client, obj T, fail bool) error,
) Actor {
	a := actorOn(name, kind, func(ctx context.Context, c client.Client, obj T) error {
		return act(ctx, c, obj, progress == Fail)
	})
	a.restores = progress == BecomeReady
	return a
}

// Deployments is an actor that makes the progress of Deployments at once, without ReplicaSets and Pods.
func Deployments(progress Progress) Actor {
	return workloadActor("deployments", &appsv1.Deployment{}, progress, workloads.ActOnDeployment)
}

// StatefulSets is an actor that makes the progress of StatefulSets at once, without Pods.
func StatefulSets(progress Progress) Actor {
	return workloadActor("statefulsets", &appsv1.StatefulSet{}, progress, workloads.ActOnStatefulSetStatus)
}

// Jobs is an actor that makes the progress of Jobs at once, without Pods.
func Jobs(progress Progress) Actor {
	return workloadActor("jobs", &batchv1.Job{}, progress, workloads.ActOnJob)
}

// HorizontalPodAutoscalers is an actor that scales the targets of HorizontalPodAutoscalers to the number of replicas
// that a function returns, within the limits of the autoscaler, and sets its status. It acts again after each change of
// a target, so that a reconciler that resets the replicas is found. A target with 0 replicas is not scaled. The time of
// the last scaling is not set, because it would differ after most faults.
func HorizontalPodAutoscalers(desired func(*autoscalingv2.HorizontalPodAutoscaler) int32) Actor {
	a := actorOn("autoscaler", &autoscalingv2.HorizontalPodAutoscaler{}, func(
		ctx context.Context, c client.Client, hpa *autoscalingv2.HorizontalPodAutoscaler,
	) error {
		return workloads.ActOnAutoscaler(ctx, c, hpa, desired(hpa.DeepCopy()))
	})
	a.follows = func(obj client.Object, kind schema.GroupKind, key client.ObjectKey) bool {
		hpa, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler)
		return ok && key == client.ObjectKey{Namespace: hpa.Namespace, Name: hpa.Spec.ScaleTargetRef.Name} &&
			kind == workloads.TargetOf(hpa).GroupKind()
	}
	return a
}

// Certificates is an actor that issues the Certificates of cert-manager at once. Each gets a Secret with a key and a
// certificate that is signed by itself, for the common name and the DNS names of the Certificate. It is valid for 90
// days, is not renewed, and is the same for each Certificate of these names. The Certificate becomes ready. As with
// cert-manager, the Secret has no owner. The Scheme must have Secrets, and Certificates too unless their
// definition is in the CRDs of the scenario.
func Certificates() Actor {
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(workloads.CertificateKind)
	return Actor{Name: "certificates", For: kind, Act: workloads.ActOnCertificate}
}

// Pods is an actor that makes the progress of Pods at once, as the scheduler and a kubelet do. With [BecomeReady], Pods
// that always restart become ready, and others succeed. With [Fail], Pods that always restart never become ready, and
// others fail. Pods with scheduling gates wait. The actor also ends Pods that are being deleted and have a grace
// period.
func Pods(progress Progress) Actor {
	return Actor{
		Name: "pods", For: &corev1.Pod{},
		Act: func(ctx context.Context, c client.Client, obj client.Object) error {
			if pod, ok := obj.(*corev1.Pod); ok {
				return workloads.ActOnPod(ctx, c, pod, progress == Fail)
			}
			return nil
		},
	}
}

// PersistentVolumeClaims is an actor that binds PersistentVolumeClaims at once, each to a volume that does not exist as
// an object. The capacity of a claim is what it requests, also after it was resized.
func PersistentVolumeClaims() Actor {
	return actorOn("volumes", &corev1.PersistentVolumeClaim{}, workloads.ActOnClaim)
}

// StatefulSetPods is an actor that creates and deletes the Pods and the PersistentVolumeClaims of StatefulSets, as
// their controller does: in order, unless the Pods are managed in parallel, and with the update strategy and the
// retention policy of claims. It needs [Pods], and [PersistentVolumeClaims] if a reconciler waits for bound claims.
// There are no ControllerRevisions: Pods below the partition of a rolling update stay as they are, but are created with
// the new template. It replaces [StatefulSets].
func StatefulSetPods() Actor {
	a := actorOn("statefulsets", &appsv1.StatefulSet{}, workloads.ActOnStatefulSet)
	a.Owns = []client.Object{&corev1.Pod{}}
	a.restores = true
	return a
}
