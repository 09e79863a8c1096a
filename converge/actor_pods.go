// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/workloads"
)

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
