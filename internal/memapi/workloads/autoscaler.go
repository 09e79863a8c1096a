// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ActOnAutoscaler scales the target of an autoscaler to a number of replicas, within the limits of the autoscaler, and
// sets its status. A target with 0 replicas is not scaled.
func ActOnAutoscaler(
	ctx context.Context, c client.Client, hpa *autoscalingv2.HorizontalPodAutoscaler, desired int32,
) error {
	before := hpa.Status.DeepCopy()
	hpa.Status.ObservedGeneration = new(hpa.Generation)
	if err := scaleTarget(ctx, c, hpa, desired); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before, &hpa.Status) {
		return nil
	}
	return c.Status().Update(ctx, hpa)
}

// TargetOf returns the kind of the target of an autoscaler.
func TargetOf(hpa *autoscalingv2.HorizontalPodAutoscaler) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(hpa.Spec.ScaleTargetRef.APIVersion, hpa.Spec.ScaleTargetRef.Kind)
}

// scaleTarget scales the target of an autoscaler, and sets the status of the autoscaler without writing it.
func scaleTarget(ctx context.Context, c client.Client, hpa *autoscalingv2.HorizontalPodAutoscaler, wanted int32) error {
	target := &unstructured.Unstructured{}
	target.SetGroupVersionKind(TargetOf(hpa))
	target.SetNamespace(hpa.Namespace)
	target.SetName(hpa.Spec.ScaleTargetRef.Name)
	scale := &unstructured.Unstructured{}
	scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	if err := c.SubResource("scale").Get(ctx, target, scale); err != nil {
		setAutoscalerCondition(hpa, autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedGetScale")
		return client.IgnoreNotFound(err)
	}
	setAutoscalerCondition(hpa, autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededGetScale")
	replicas, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	if err != nil {
		return err
	}
	hpa.Status.CurrentReplicas = int32(replicas)
	if replicas == 0 {
		setAutoscalerCondition(hpa, autoscalingv2.ScalingActive, corev1.ConditionFalse, "ScalingDisabled")
		return nil
	}
	setAutoscalerCondition(hpa, autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound")
	hpa.Status.DesiredReplicas = min(max(wanted, Count(hpa.Spec.MinReplicas)), hpa.Spec.MaxReplicas)
	if hpa.Status.CurrentReplicas == hpa.Status.DesiredReplicas {
		return nil
	}
	if err := unstructured.SetNestedField(
		scale.Object, int64(hpa.Status.DesiredReplicas), "spec", "replicas",
	); err != nil {
		return err
	}
	return c.SubResource("scale").Update(ctx, target, client.WithSubResourceBody(scale))
}

func setAutoscalerCondition(
	hpa *autoscalingv2.HorizontalPodAutoscaler, kind autoscalingv2.HorizontalPodAutoscalerConditionType,
	status corev1.ConditionStatus, reason string,
) {
	condition := autoscalingv2.HorizontalPodAutoscalerCondition{
		Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.Now(),
	}
	for i := range hpa.Status.Conditions {
		if c := &hpa.Status.Conditions[i]; c.Type == kind {
			if c.Status != status || c.Reason != reason {
				*c = condition
			}
			return
		}
	}
	hpa.Status.Conditions = append(hpa.Status.Conditions, condition)
}
