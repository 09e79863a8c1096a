// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// podCollectorPeriod is how often pods are checked. A pod whose node does not exist is deleted at the second check.
const podCollectorPeriod = 5 * time.Second

// podCollector deletes pods of nodes that no longer exist, terminating pods without a node, and the oldest terminated
// pods above a threshold. Kubernetes' own package for this, podgc, links 188 packages of the kubelet for one function.
type podCollector struct {
	setup
	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	synced   []cache.InformerSynced
	suspects map[string]bool // names of nodes that did not exist at the previous check
}

func newPodCollector(_ context.Context, s setup) (runFunc, error) {
	pods, nodes := s.informers.Core().V1().Pods(), s.informers.Core().V1().Nodes()
	c := &podCollector{
		setup: s, pods: pods.Lister(), nodes: nodes.Lister(),
		synced: []cache.InformerSynced{pods.Informer().HasSynced, nodes.Informer().HasSynced},
	}
	return c.run, nil
}

func (c *podCollector) run(ctx context.Context) {
	if cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		wait.UntilWithContext(ctx, c.check, podCollectorPeriod)
	}
}

func (c *podCollector) check(ctx context.Context) {
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return // a lister of a cache returns no error
	}
	missing := c.missingNodes(ctx, pods)
	var terminated []*corev1.Pod
	for _, pod := range pods {
		switch {
		case missing[pod.Spec.NodeName]:
			c.remove(ctx, pod, &corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
				LastTransitionTime: metav1.Now(), Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
			})
		case pod.DeletionTimestamp != nil && pod.Spec.NodeName == "":
			c.remove(ctx, pod, nil)
		case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
			terminated = append(terminated, pod)
		}
	}
	excess := len(terminated) - int(c.settings.PodGCController.TerminatedPodGCThreshold)
	if excess <= 0 {
		return
	}
	slices.SortFunc(terminated, func(a, b *corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for _, pod := range terminated[:excess] {
		c.remove(ctx, pod, nil)
	}
}

// missingNodes returns the nodes of the pods that do not exist, neither now nor at the previous check.
func (c *podCollector) missingNodes(ctx context.Context, pods []*corev1.Pod) map[string]bool {
	suspects, missing := map[string]bool{}, map[string]bool{}
	for _, pod := range pods {
		name := pod.Spec.NodeName
		if name == "" || suspects[name] {
			continue
		}
		if _, err := c.nodes.Get(name); !apierrors.IsNotFound(err) {
			continue
		}
		suspects[name] = true
		if !c.suspects[name] {
			continue
		}
		// The cache may be old.
		_, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		missing[name] = apierrors.IsNotFound(err)
	}
	c.suspects = suspects
	return missing
}

// remove marks the pod as failed, so that its owner counts it as such, and deletes it.
func (c *podCollector) remove(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition) {
	client := c.client.CoreV1().Pods(pod.Namespace)
	err := func() error {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			failed := pod.DeepCopy()
			failed.Status.Phase = corev1.PodFailed
			if condition != nil {
				failed.Status.Conditions = append(slices.DeleteFunc(failed.Status.Conditions,
					func(c corev1.PodCondition) bool { return c.Type == condition.Type }), *condition)
			}
			if _, err := client.UpdateStatus(ctx, failed, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		return client.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
	}()
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot delete pod", "pod", klog.KObj(pod))
	}
}
