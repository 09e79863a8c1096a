// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"
	"math"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func defaultDeployment(d *appsv1.Deployment) {
	setDefaultPointer(&d.Spec.Replicas, 1)
	strategy := &d.Spec.Strategy
	setDefault(&strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setDefaultPointer(&strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setDefaultPointer(&strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setDefaultPointer(&strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	setDefaultPointer(&d.Spec.RevisionHistoryLimit, 10)
	setDefaultPointer(&d.Spec.ProgressDeadlineSeconds, 600)
	defaultPodSpec(&d.Spec.Template.Spec)
}

func defaultReplicaSet(r *appsv1.ReplicaSet) {
	setDefaultPointer(&r.Spec.Replicas, 1)
	defaultPodSpec(&r.Spec.Template.Spec)
}

func defaultReplicationController(r *corev1.ReplicationController) {
	setDefaultPointer(&r.Spec.Replicas, 1)
	if r.Spec.Template == nil {
		return
	}
	if labels := r.Spec.Template.Labels; labels != nil {
		if len(r.Spec.Selector) == 0 {
			r.Spec.Selector = maps.Clone(labels)
		}
		if len(r.Labels) == 0 {
			r.Labels = maps.Clone(labels)
		}
	}
	defaultPodSpec(&r.Spec.Template.Spec)
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	strategy := &d.Spec.UpdateStrategy
	setDefault(&strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if strategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setDefaultPointer(&strategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setDefaultPointer(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setDefaultPointer(&strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	setDefaultPointer(&d.Spec.RevisionHistoryLimit, 10)
	defaultPodSpec(&d.Spec.Template.Spec)
}

func defaultStatefulSet(s *appsv1.StatefulSet) {
	setDefault(&s.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	strategy := &s.Spec.UpdateStrategy
	if strategy.Type == "" {
		strategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		setDefaultPointer(&strategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if rolling := strategy.RollingUpdate; strategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && rolling != nil {
		setDefaultPointer(&rolling.Partition, 0)
		setDefaultPointer(&rolling.MaxUnavailable, intstr.FromInt32(1))
	}
	setDefaultPointer(&s.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	setDefault(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefault(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefaultPointer(&s.Spec.Replicas, 1)
	setDefaultPointer(&s.Spec.RevisionHistoryLimit, 10)
	for i := range s.Spec.VolumeClaimTemplates {
		claim := &s.Spec.VolumeClaimTemplates[i]
		setDefault(&claim.Status.Phase, corev1.ClaimPending)
		defaultClaimSpec(&claim.Spec)
	}
	defaultPodSpec(&s.Spec.Template.Spec)
}

func defaultJob(j *batchv1.Job) {
	defaultJobSpec(&j.Spec)
	if len(j.Labels) == 0 {
		j.Labels = j.Spec.Template.Labels // the same map, so that a job gets the labels that are made for its pods
	}
	if j.Spec.Completions == nil && j.Spec.Parallelism == nil {
		j.Spec.Completions = new(int32(1))
	}
	setDefaultPointer(&j.Spec.Parallelism, 1)
	if j.Spec.BackoffLimit == nil {
		j.Spec.BackoffLimit = new(int32(6))
		if j.Spec.BackoffLimitPerIndex != nil {
			*j.Spec.BackoffLimit = math.MaxInt32
		}
	}
	setDefaultPointer(&j.Spec.CompletionMode, batchv1.NonIndexedCompletion)
	setDefaultPointer(&j.Spec.Suspend, false)
	if j.Spec.PodReplacementPolicy == nil {
		j.Spec.PodReplacementPolicy = new(batchv1.TerminatingOrFailed)
		if j.Spec.PodFailurePolicy != nil {
			*j.Spec.PodReplacementPolicy = batchv1.Failed
		}
	}
	setDefaultPointer(&j.Spec.ManualSelector, false)
}

// defaultJobSpec is also for templates of jobs, which get few defaults.
func defaultJobSpec(spec *batchv1.JobSpec) {
	defaultPodSpec(&spec.Template.Spec)
	if spec.PodFailurePolicy != nil {
		for _, rule := range spec.PodFailurePolicy.Rules {
			for i := range rule.OnPodConditions {
				setDefault(&rule.OnPodConditions[i].Status, corev1.ConditionTrue)
			}
		}
	}
}

func defaultCronJob(c *batchv1.CronJob) {
	setDefault(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setDefaultPointer(&c.Spec.Suspend, false)
	setDefaultPointer(&c.Spec.SuccessfulJobsHistoryLimit, 3)
	setDefaultPointer(&c.Spec.FailedJobsHistoryLimit, 1)
	defaultJobSpec(&c.Spec.JobTemplate.Spec)
}

// createJob has the pods of a job carry its name and UID, by which it finds them.
func createJob(j *batchv1.Job) {
	if *j.Spec.ManualSelector {
		return
	}
	given := j.Spec.Template.Labels
	labels := maps.Clone(given)
	if labels == nil {
		labels = map[string]string{}
	}
	for label, value := range map[string]string{
		"job-name": j.Name, batchv1.JobNameLabel: j.Name, "controller-uid": string(j.UID), batchv1.ControllerUidLabel: string(j.UID),
	} {
		if _, ok := labels[label]; !ok {
			labels[label] = value
		}
	}
	j.Spec.Template.Labels = labels
	// A job without labels has got those of its pods, as the same map, unless it was copied since then.
	if same := reflect.ValueOf(j.Labels).UnsafePointer() == reflect.ValueOf(given).UnsafePointer(); len(j.Labels) == 0 || same {
		j.Labels = labels
	}
	selector := &metav1.LabelSelector{}
	if j.Spec.Selector != nil {
		selector = j.Spec.Selector.DeepCopy()
	}
	if _, ok := selector.MatchLabels[batchv1.ControllerUidLabel]; !ok {
		metav1.AddLabelToSelector(selector, batchv1.ControllerUidLabel, string(j.UID))
	}
	j.Spec.Selector = selector
}

func defaultAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) {
	setDefaultPointer(&h.Spec.MinReplicas, 1)
	if len(h.Spec.Metrics) == 0 {
		h.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
			},
		}}
	}
	if b := h.Spec.Behavior; b != nil {
		percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}
		pods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}
		setDefaultPointer(&b.ScaleUp, autoscalingv2.HPAScalingRules{})
		setDefaultPointer(&b.ScaleUp.StabilizationWindowSeconds, 0)
		defaultScaling(b.ScaleUp, pods, percent)
		setDefaultPointer(&b.ScaleDown, autoscalingv2.HPAScalingRules{})
		defaultScaling(b.ScaleDown, percent)
	}
}

func defaultScaling(rules *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	setDefaultPointer(&rules.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if rules.Policies == nil {
		rules.Policies = policies
	}
}
