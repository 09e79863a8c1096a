// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ActOnStatefulSet creates and deletes the Pods and the PersistentVolumeClaims of a StatefulSet, as its controller
// does: in order, unless the Pods are managed in parallel, and with the update strategy and the retention policy of
// claims.
// There are no ControllerRevisions: Pods below the partition of a rolling update stay as they are, but are created with
// the new template.
func ActOnStatefulSet(ctx context.Context, c client.Client, set *appsv1.StatefulSet) error {
	s, err := newStatefulSet(ctx, c, set)
	if err != nil {
		return err
	}
	if err := s.act(ctx); err != nil {
		return err
	}
	return s.updateStatus(ctx)
}

// statefulSet is a StatefulSet with its Pods.
type statefulSet struct {
	client.Client

	set *appsv1.StatefulSet
	// revision names the present template.
	revision string
	// first and end are the ordinals of the first Pod and of the one after the last.
	first, end int
	pods       map[int]*corev1.Pod
	// last is the highest ordinal of a Pod.
	last int
}

func newStatefulSet(ctx context.Context, c client.Client, set *appsv1.StatefulSet) (*statefulSet, error) {
	s := &statefulSet{Client: c, set: set, pods: map[int]*corev1.Pod{}, last: -1}
	template, err := json.Marshal(set.Spec.Template)
	if err != nil {
		return nil, err
	}
	hash := fnv.New32a()
	hash.Write(template)
	s.revision = fmt.Sprintf("%s-%08x", set.Name, hash.Sum32())
	if set.Spec.Ordinals != nil {
		s.first = int(set.Spec.Ordinals.Start)
	}
	s.end = s.first + int(Count(set.Spec.Replicas))
	list := &corev1.PodList{}
	if err := c.List(ctx, list, client.InNamespace(set.Namespace)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		ordinal, err := strconv.Atoi(strings.TrimPrefix(pod.Name, set.Name+"-"))
		if err == nil && metav1.IsControlledBy(pod, set) {
			s.pods[ordinal], s.last = pod, max(s.last, ordinal)
		}
	}
	return s, nil
}

// act creates or deletes the Pods that may be created or deleted now.
func (s *statefulSet) act(ctx context.Context) error {
	ordered := s.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	for i := s.first; i < s.end; i++ {
		acted, err := s.keep(ctx, i)
		if err != nil || ordered && (acted || !isReady(s.pods[i])) {
			return err
		}
	}
	for i := s.last; i >= 0; i-- {
		if pod := s.pods[i]; pod != nil && (i < s.first || i >= s.end) {
			if err := s.remove(ctx, i, pod); err != nil || ordered {
				return err
			}
		}
	}
	return s.roll(ctx)
}

// keep creates a Pod that does not exist, and deletes one that has ended.
func (s *statefulSet) keep(ctx context.Context, ordinal int) (acted bool, err error) {
	pod := s.pods[ordinal]
	switch {
	case pod == nil:
		return true, s.create(ctx, ordinal)
	case pod.DeletionTimestamp == nil && Ended(pod):
		return true, client.IgnoreNotFound(s.Delete(ctx, pod))
	}
	return false, nil
}

// roll deletes the Pod with the highest ordinal whose template has changed, once those above it are ready.
func (s *statefulSet) roll(ctx context.Context) error {
	strategy := s.set.Spec.UpdateStrategy
	if strategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return nil
	}
	until := s.first
	if strategy.RollingUpdate != nil && strategy.RollingUpdate.Partition != nil {
		until = max(until, int(*strategy.RollingUpdate.Partition))
	}
	for i := s.end - 1; i >= until; i-- {
		switch pod := s.pods[i]; {
		case pod == nil || pod.DeletionTimestamp != nil:
			return nil
		case pod.Labels[appsv1.ControllerRevisionHashLabelKey] != s.revision:
			return client.IgnoreNotFound(s.Delete(ctx, pod))
		case !isReady(pod):
			return nil
		}
	}
	return nil
}

// create creates a Pod, and its claims that do not exist.
func (s *statefulSet) create(ctx context.Context, ordinal int) error {
	template := s.set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = s.set.Namespace, s.nameOf(ordinal)
	pod.Labels = maps.Clone(pod.Labels)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(ordinal)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = s.revision
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, s.set.Spec.ServiceName
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(s.set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")),
	}
	for i := range s.set.Spec.VolumeClaimTemplates {
		claim := s.claim(i, ordinal)
		if err := client.IgnoreAlreadyExists(s.Create(ctx, claim)); err != nil {
			return err
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: s.set.Spec.VolumeClaimTemplates[i].Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
			},
		})
	}
	return s.Create(ctx, pod)
}

// claim returns the claim of a Pod for a template.
func (s *statefulSet) claim(template, ordinal int) *corev1.PersistentVolumeClaim {
	claim := s.set.Spec.VolumeClaimTemplates[template].DeepCopy()
	claim.Namespace, claim.Name = s.set.Namespace, claim.Name+"-"+s.nameOf(ordinal)
	claim.Status = corev1.PersistentVolumeClaimStatus{}
	if s.set.Spec.Selector != nil {
		claim.Labels = maps.Clone(s.set.Spec.Selector.MatchLabels)
	}
	retention := s.set.Spec.PersistentVolumeClaimRetentionPolicy
	if retention != nil && retention.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		claim.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(s.set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")),
		}
	}
	return claim
}

// remove deletes a Pod that is no longer wanted, and its claims if the StatefulSet says so.
func (s *statefulSet) remove(ctx context.Context, ordinal int, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	retention := s.set.Spec.PersistentVolumeClaimRetentionPolicy
	if retention != nil && retention.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		for i := range s.set.Spec.VolumeClaimTemplates {
			if err := client.IgnoreNotFound(s.Delete(ctx, s.claim(i, ordinal))); err != nil {
				return err
			}
		}
	}
	return client.IgnoreNotFound(s.Delete(ctx, pod))
}

func (s *statefulSet) nameOf(ordinal int) string { return s.set.Name + "-" + strconv.Itoa(ordinal) }

// updateStatus counts the Pods that existed before.
func (s *statefulSet) updateStatus(ctx context.Context) error {
	status := &s.set.Status
	before := status.DeepCopy()
	status.ObservedGeneration, status.UpdateRevision = s.set.Generation, s.revision
	status.Replicas, status.ReadyReplicas, status.UpdatedReplicas, status.CurrentReplicas = int32(len(s.pods)), 0, 0, 0
	for _, pod := range s.pods {
		if isReady(pod) {
			status.ReadyReplicas++
		}
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] == s.revision {
			status.UpdatedReplicas++
		}
	}
	if status.CurrentRevision == "" || status.UpdatedReplicas == status.Replicas {
		status.CurrentRevision = s.revision
	}
	for _, pod := range s.pods {
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] == status.CurrentRevision {
			status.CurrentReplicas++
		}
	}
	status.AvailableReplicas = status.ReadyReplicas
	if equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	return s.Status().Update(ctx, s.set)
}

// isReady reports whether a Pod is ready, and is not being deleted.
func isReady(pod *corev1.Pod) bool {
	if pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
