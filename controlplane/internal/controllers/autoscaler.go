// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"

	"trueup.dev/controlplane/internal/podrunner"
)

// autoscalerPeriod is how often autoscalers are evaluated. kube-controller-manager takes 15 s.
const autoscalerPeriod = time.Second

func newPodAutoscaler(ctx context.Context, s setup) (runFunc, error) {
	scales, err := s.scales()
	if err != nil {
		return nil, err
	}
	resources, err := resourceclient.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	external, err := external_metrics.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	versions := custom_metrics.NewAvailableAPIsGetter(s.client.Discovery())
	pods := s.informers.Core().V1().Pods()
	usage := &podUsage{
		MetricsClient: metrics.NewRESTMetricsClient(
			resources, custom_metrics.NewForConfig(s.config, s.mapper, versions), external),
		pods: pods.Lister(),
	}
	settings := s.settings.HPAController
	c := podautoscaler.NewHorizontalController(ctx, s.client.CoreV1(), scales, s.client.AutoscalingV2(), s.mapper, usage,
		s.informers.Autoscaling().V2().HorizontalPodAutoscalers(), pods, autoscalerPeriod,
		settings.HorizontalPodAutoscalerDownscaleStabilizationWindow.Duration, settings.HorizontalPodAutoscalerTolerance,
		settings.HorizontalPodAutoscalerCPUInitializationPeriod.Duration,
		settings.HorizontalPodAutoscalerInitialReadinessDelay.Duration)
	return concurrently(
		func(ctx context.Context) {
			custom_metrics.PeriodicallyInvalidate(versions, autoscalerPeriod, ctx.Done())
		},
		withWorkers(c.Run, settings.ConcurrentHorizontalPodAutoscalerSyncs),
	), nil
}

// podUsage takes the resource usage of pods from their annotations. If no selected pod has the annotation, the API
// metrics.k8s.io is asked, which exists only if the user has registered one.
type podUsage struct {
	metrics.MetricsClient
	pods corelisters.PodLister
}

var usageAnnotations = map[corev1.ResourceName]string{
	corev1.ResourceCPU:    podrunner.CPUAnnotation,
	corev1.ResourceMemory: podrunner.MemoryAnnotation,
}

// GetResourceMetric returns the usage of the pods in thousandths. The usage of a pod counts for each of its containers.
func (u *podUsage) GetResourceMetric(
	ctx context.Context, name corev1.ResourceName, namespace string, selector labels.Selector, container string,
) (metrics.PodMetricsInfo, time.Time, error) {
	pods, err := u.pods.Pods(namespace).List(selector)
	if err != nil {
		return nil, time.Time{}, err
	}
	now := time.Now()
	usage := metrics.PodMetricsInfo{}
	for _, pod := range pods {
		value, ok := pod.Annotations[usageAnnotations[name]]
		if !ok {
			continue
		}
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Invalid annotation", "pod", klog.KObj(pod), "annotation", usageAnnotations[name])
			continue
		}
		usage[pod.Name] = metrics.PodMetric{Timestamp: now, Value: quantity.MilliValue()}
	}
	if len(usage) == 0 {
		return u.MetricsClient.GetResourceMetric(ctx, name, namespace, selector, container)
	}
	return usage, now, nil
}
