// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// cordoned reports whether the node takes no new pods, as after "kubectl cordon".
func cordoned(node any) bool { return node.(*corev1.Node).Spec.Unschedulable }

// toleratesCordon reports whether a pod with the toleration runs on a cordoned node, as the pods of a DaemonSet do.
func toleratesCordon(t corev1.Toleration) bool {
	return t.ToleratesTaint(klog.Background(), &corev1.Taint{
		Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule,
	}, false)
}

// bindWaiting enqueues all pods without a node.
func (r *Runner) bindWaiting() {
	pods, _ := r.pods.List(labels.Everything()) // a lister of a cache returns no error
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			r.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
}

// reportUnschedulable sets the condition that a scheduler sets.
func (r *Runner) reportUnschedulable(ctx context.Context, pod *corev1.Pod) error {
	waiting := pod.DeepCopy()
	setCondition(&waiting.Status, corev1.PodScheduled, false, corev1.PodReasonUnschedulable, metav1.Now())
	for i := range waiting.Status.Conditions {
		if c := &waiting.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			c.Message = "0/1 nodes are available: 1 node(s) were unschedulable."
		}
	}
	if apiequality.Semantic.DeepEqual(waiting.Status, pod.Status) {
		return nil
	}
	_, err := r.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, waiting, metav1.UpdateOptions{})
	return err
}
