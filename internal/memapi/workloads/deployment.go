// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const revisionAnnotation = "deployment.kubernetes.io/revision"

// actOnDeployment creates the ReplicaSet of the present template. The other ReplicaSets are scaled to zero when it is
// ready, whatever the strategy is.
func actOnDeployment(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	list := &appsv1.ReplicaSetList{}
	if err := c.List(ctx, list, client.InNamespace(d.Namespace)); err != nil {
		return err
	}
	hash, err := hashOf(d.Spec.Template)
	if err != nil {
		return err
	}
	var current *appsv1.ReplicaSet
	var others []*appsv1.ReplicaSet
	revision := 0
	for i := range list.Items {
		set := &list.Items[i]
		if !metav1.IsControlledBy(set, d) {
			continue
		}
		number, _ := strconv.Atoi(set.Annotations[revisionAnnotation])
		revision = max(revision, number)
		if set.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash {
			current = set
		} else {
			others = append(others, set)
		}
	}
	if current, err = currentReplicaSet(ctx, c, d, current, hash, revision); err != nil {
		return err
	}
	if current.Status.AvailableReplicas >= Count(d.Spec.Replicas) &&
		current.Status.ObservedGeneration == current.Generation {
		for _, set := range others {
			if Count(set.Spec.Replicas) > 0 {
				set.Spec.Replicas = new(int32(0))
				if err := c.Update(ctx, set); err != nil {
					return err
				}
			}
		}
	}
	return deploymentStatus(ctx, c, d, current, others)
}

// currentReplicaSet creates the ReplicaSet of the present template, or scales it.
func currentReplicaSet(
	ctx context.Context, c client.Client, d *appsv1.Deployment, set *appsv1.ReplicaSet, hash string, revision int,
) (*appsv1.ReplicaSet, error) {
	if set == nil {
		labels := maps.Clone(d.Spec.Template.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
		selector := d.Spec.Selector.DeepCopy()
		if selector.MatchLabels == nil {
			selector.MatchLabels = map[string]string{}
		}
		selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
		set = &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: d.Namespace, Name: d.Name + "-" + hash, Labels: labels,
				Annotations: map[string]string{revisionAnnotation: strconv.Itoa(revision + 1)},
				OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment")),
				},
			},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: new(Count(d.Spec.Replicas)), MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector,
				Template: *d.Spec.Template.DeepCopy(),
			},
		}
		set.Spec.Template.Labels = maps.Clone(labels)
		return set, c.Create(ctx, set)
	}
	number, _ := strconv.Atoi(set.Annotations[revisionAnnotation])
	if Count(set.Spec.Replicas) == Count(d.Spec.Replicas) && number == revision {
		return set, nil
	}
	set.Spec.Replicas = new(Count(d.Spec.Replicas))
	if number < revision { // a rollback
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, revisionAnnotation, strconv.Itoa(revision+1))
	}
	return set, c.Update(ctx, set)
}

// deploymentStatus updates the status of a Deployment, and its revision.
func deploymentStatus(
	ctx context.Context, c client.Client, d *appsv1.Deployment, current *appsv1.ReplicaSet, others []*appsv1.ReplicaSet,
) error {
	if revision := current.Annotations[revisionAnnotation]; d.Annotations[revisionAnnotation] != revision {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, revisionAnnotation, revision)
		if err := c.Update(ctx, d); err != nil {
			return err
		}
	}
	before := d.Status.DeepCopy()
	s := &d.Status
	s.ObservedGeneration, s.UpdatedReplicas = d.Generation, current.Status.Replicas
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas =
		current.Status.Replicas, current.Status.ReadyReplicas, current.Status.AvailableReplicas
	for _, set := range others {
		s.Replicas += set.Status.Replicas
		s.ReadyReplicas += set.Status.ReadyReplicas
		s.AvailableReplicas += set.Status.AvailableReplicas
	}
	wanted := Count(d.Spec.Replicas)
	s.UnavailableReplicas = max(0, wanted-s.AvailableReplicas)
	available := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable",
		Message: "Deployment has minimum availability.",
	}
	if s.UnavailableReplicas > 0 {
		available.Status, available.Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
		available.Message = "Deployment does not have minimum availability."
	}
	progressing := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated",
		Message: fmt.Sprintf("ReplicaSet %q is progressing.", current.Name),
	}
	if s.UpdatedReplicas == wanted && s.AvailableReplicas == wanted && s.Replicas == wanted {
		progressing.Reason = "NewReplicaSetAvailable"
		progressing.Message = fmt.Sprintf("ReplicaSet %q has successfully progressed.", current.Name)
	}
	setDeploymentCondition(s, available)
	setDeploymentCondition(s, progressing)
	if equality.Semantic.DeepEqual(before, s) {
		return nil
	}
	return c.Status().Update(ctx, d)
}

func setDeploymentCondition(s *appsv1.DeploymentStatus, condition appsv1.DeploymentCondition) {
	condition.LastUpdateTime, condition.LastTransitionTime = metav1.Now(), metav1.Now()
	for i := range s.Conditions {
		if found := &s.Conditions[i]; found.Type == condition.Type {
			if found.Status == condition.Status {
				condition.LastTransitionTime = found.LastTransitionTime
			}
			if found.Status != condition.Status || found.Reason != condition.Reason || found.Message != condition.Message {
				*found = condition
			}
			return
		}
	}
	s.Conditions = append(s.Conditions, condition)
}

// hashOf returns a text that differs for templates that differ.
func hashOf(template corev1.PodTemplateSpec) (string, error) {
	encoded, err := json.Marshal(template)
	if err != nil {
		return "", err
	}
	hash := fnv.New32a()
	hash.Write(encoded)
	return fmt.Sprintf("%08x", hash.Sum32()), nil
}
