// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const usageDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: test}, spec: {
	selector: {matchLabels: {app: test}}, template: {
		metadata: {labels: {app: test}, annotations: {trueup.dev/pod-cpu: 150m}},
		spec: {containers: [{name: main, image: image, resources: {requests: {cpu: 100m}}}]}}}}`

func TestAutoscalerActsOnAnnotations(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, namespace, usageDeployment)
	p.apply(t, namespace, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: test}, spec: {
		scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: test}, minReplicas: 1, maxReplicas: 4,
		metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}`)
	eventually(t, waitLimit, "scaled to the maximum", func(ctx context.Context) error {
		deployment, err := p.client.AppsV1().Deployments(namespace).Get(ctx, "test", metav1.GetOptions{})
		if err == nil && deployment.Status.ReadyReplicas != 4 {
			err = fmt.Errorf("status %+v", deployment.Status)
		}
		return err
	})
	eventually(t, waitLimit, "utilization shown", func(ctx context.Context) error {
		scaler, err := p.client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, "test", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if metrics := scaler.Status.CurrentMetrics; len(metrics) != 1 || metrics[0].Resource == nil ||
			*metrics[0].Resource.Current.AverageUtilization != 150 {
			return fmt.Errorf("status %+v", scaler.Status)
		}
		return nil
	})
}

// Without annotations and without a metrics API, the autoscaler says why it does nothing.
func TestAutoscalerExplainsMissingMetrics(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, namespace, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: test}, spec: {
		selector: {matchLabels: {app: test}}, template: {metadata: {labels: {app: test}},
			spec: {containers: [{name: main, image: image, resources: {requests: {cpu: 100m}}}]}}}}`)
	p.apply(t, namespace, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: test}, spec: {
		scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: test}, maxReplicas: 4,
		metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}`)
	eventually(t, waitLimit, "condition", func(ctx context.Context) error {
		scaler, err := p.client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, "test", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range scaler.Status.Conditions {
			if c.Type == "ScalingActive" && c.Status == "False" && c.Reason == "FailedGetResourceMetric" {
				return nil
			}
		}
		return fmt.Errorf("status %+v", scaler.Status)
	})
}

func TestDisruptionBudgetLimitsEvictions(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, namespace, usageDeployment)
	p.apply(t, namespace, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: test},
		spec: {minAvailable: 1, selector: {matchLabels: {app: test}}}}`)
	eventually(t, waitLimit, "budget counted", func(ctx context.Context) error {
		budget, err := p.client.PolicyV1().PodDisruptionBudgets(namespace).Get(ctx, "test", metav1.GetOptions{})
		if err == nil && (budget.Status.CurrentHealthy != 1 || budget.Status.DisruptionsAllowed != 0) {
			err = fmt.Errorf("status %+v", budget.Status)
		}
		return err
	})
	pods, err := p.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	evict := func() error {
		return p.client.CoreV1().Pods(namespace).EvictV1(t.Context(), &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: pods.Items[0].Name},
		})
	}
	if err := evict(); !apierrors.IsTooManyRequests(err) {
		t.Errorf("eviction: %v, want it refused by the budget", err)
	}
	if err := p.client.PolicyV1().PodDisruptionBudgets(namespace).Delete(
		t.Context(), "test", metav1.DeleteOptions{},
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "eviction allowed", func(context.Context) error { return evict() })
	eventually(t, waitLimit, "pod replaced", func(ctx context.Context) error {
		now, err := p.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && (len(now.Items) != 1 || now.Items[0].UID == pods.Items[0].UID ||
			now.Items[0].Status.Phase != corev1.PodRunning) {
			err = fmt.Errorf("%d pods: %+v", len(now.Items), now.Items)
		}
		return err
	})
}
