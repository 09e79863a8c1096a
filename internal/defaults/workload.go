// SPDX-License-Identifier: Apache-2.0

package defaults

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

// Deployment sets the defaults of a Deployment.
// Upstream: pkg/apis/apps/v1/defaults.go: SetDefaults_Deployment
func Deployment(d *appsv1.Deployment) {
	SetPointer(&d.Spec.Replicas, 1)
	strategy := &d.Spec.Strategy
	Set(&strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		SetPointer(&strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		SetPointer(&strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		SetPointer(&strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	SetPointer(&d.Spec.RevisionHistoryLimit, 10)
	SetPointer(&d.Spec.ProgressDeadlineSeconds, 600)
	PodSpec(&d.Spec.Template.Spec)
}

// ReplicaSet sets the defaults of a ReplicaSet.
// Upstream: pkg/apis/apps/v1/defaults.go: SetDefaults_ReplicaSet
func ReplicaSet(r *appsv1.ReplicaSet) {
	SetPointer(&r.Spec.Replicas, 1)
	PodSpec(&r.Spec.Template.Spec)
}

// ReplicationController sets the defaults of a ReplicationController. Selector and labels are copied from its template.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_ReplicationController
func ReplicationController(r *corev1.ReplicationController) {
	SetPointer(&r.Spec.Replicas, 1)
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
	PodSpec(&r.Spec.Template.Spec)
}

// DaemonSet sets the defaults of a DaemonSet.
// Upstream: pkg/apis/apps/v1/defaults.go: SetDefaults_DaemonSet
func DaemonSet(d *appsv1.DaemonSet) {
	strategy := &d.Spec.UpdateStrategy
	Set(&strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if strategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		SetPointer(&strategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		SetPointer(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		SetPointer(&strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	SetPointer(&d.Spec.RevisionHistoryLimit, 10)
	PodSpec(&d.Spec.Template.Spec)
}

// StatefulSet sets the defaults of a StatefulSet.
// Upstream: pkg/apis/apps/v1/defaults.go: SetDefaults_StatefulSet
func StatefulSet(s *appsv1.StatefulSet) {
	Set(&s.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	strategy := &s.Spec.UpdateStrategy
	if strategy.Type == "" {
		strategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		SetPointer(&strategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if rolling := strategy.RollingUpdate; strategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && rolling != nil {
		SetPointer(&rolling.Partition, 0)
		SetPointer(&rolling.MaxUnavailable, intstr.FromInt32(1))
	}
	SetPointer(&s.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	Set(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	Set(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	SetPointer(&s.Spec.Replicas, 1)
	SetPointer(&s.Spec.RevisionHistoryLimit, 10)
	for i := range s.Spec.VolumeClaimTemplates {
		claim := &s.Spec.VolumeClaimTemplates[i]
		Set(&claim.Status.Phase, corev1.ClaimPending)
		defaultClaimSpec(&claim.Spec)
	}
	PodSpec(&s.Spec.Template.Spec)
}

// Job sets the defaults of a Job. Selector and labels are generated on creation, see [GenerateJob].
// Upstream: pkg/apis/batch/v1/defaults.go: SetDefaults_Job
func Job(j *batchv1.Job) {
	defaultJobSpec(&j.Spec)
	if len(j.Labels) == 0 {
		j.Labels = j.Spec.Template.Labels // the same map, so that the job also gets the labels generated for its pods
	}
	if j.Spec.Completions == nil && j.Spec.Parallelism == nil {
		j.Spec.Completions = new(int32(1))
	}
	SetPointer(&j.Spec.Parallelism, 1)
	if j.Spec.BackoffLimit == nil {
		j.Spec.BackoffLimit = new(int32(6))
		if j.Spec.BackoffLimitPerIndex != nil {
			*j.Spec.BackoffLimit = math.MaxInt32
		}
	}
	SetPointer(&j.Spec.CompletionMode, batchv1.NonIndexedCompletion)
	SetPointer(&j.Spec.Suspend, false)
	if j.Spec.PodReplacementPolicy == nil {
		j.Spec.PodReplacementPolicy = new(batchv1.TerminatingOrFailed)
		if j.Spec.PodFailurePolicy != nil {
			*j.Spec.PodReplacementPolicy = batchv1.Failed
		}
	}
	SetPointer(&j.Spec.ManualSelector, false)
}

// defaultJobSpec also sets the defaults of job templates, which have few of them.
// Upstream: pkg/apis/batch/v1/defaults.go: SetDefaults_PodFailurePolicyOnPodConditionsPattern
func defaultJobSpec(spec *batchv1.JobSpec) {
	PodSpec(&spec.Template.Spec)
	if spec.PodFailurePolicy != nil {
		for _, rule := range spec.PodFailurePolicy.Rules {
			for i := range rule.OnPodConditions {
				Set(&rule.OnPodConditions[i].Status, corev1.ConditionTrue)
			}
		}
	}
}

// CronJob sets the defaults of a CronJob.
// Upstream: pkg/apis/batch/v1/defaults.go: SetDefaults_CronJob
func CronJob(c *batchv1.CronJob) {
	Set(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	SetPointer(&c.Spec.Suspend, false)
	SetPointer(&c.Spec.SuccessfulJobsHistoryLimit, 3)
	SetPointer(&c.Spec.FailedJobsHistoryLimit, 1)
	defaultJobSpec(&c.Spec.JobTemplate.Spec)
}

// GenerateJob adds the labels with name and UID of the job to its pod template, and the selector for them.
// Upstream: pkg/registry/batch/job/strategy.go: generateSelectorIfNeeded, generateSelector
func GenerateJob(j *batchv1.Job) {
	if *j.Spec.ManualSelector {
		return
	}
	given := j.Spec.Template.Labels
	labels := maps.Clone(given)
	if labels == nil {
		labels = map[string]string{}
	}
	for label, value := range map[string]string{
		"job-name": j.Name, batchv1.JobNameLabel: j.Name,
		"controller-uid": string(j.UID), batchv1.ControllerUidLabel: string(j.UID),
	} {
		if _, ok := labels[label]; !ok {
			labels[label] = value
		}
	}
	j.Spec.Template.Labels = labels
	// A job without labels has the labels of its pods, as the same map unless it was copied since.
	same := reflect.ValueOf(j.Labels).UnsafePointer() == reflect.ValueOf(given).UnsafePointer()
	if same || len(j.Labels) == 0 {
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

// Autoscaler sets the defaults of a HorizontalPodAutoscaler.
// Upstream: pkg/apis/autoscaling/v2/defaults.go: SetDefaults_HorizontalPodAutoscaler
// Upstream: pkg/apis/autoscaling/v2/defaults.go: SetDefaults_HorizontalPodAutoscalerBehavior
func Autoscaler(h *autoscalingv2.HorizontalPodAutoscaler) {
	SetPointer(&h.Spec.MinReplicas, 1)
	if len(h.Spec.Metrics) == 0 {
		h.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
			},
		}}
	}
	if b := h.Spec.Behavior; b != nil {
		percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}
		pods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}
		SetPointer(&b.ScaleUp, autoscalingv2.HPAScalingRules{})
		SetPointer(&b.ScaleUp.StabilizationWindowSeconds, 0)
		defaultScaling(b.ScaleUp, pods, percent)
		SetPointer(&b.ScaleDown, autoscalingv2.HPAScalingRules{})
		defaultScaling(b.ScaleDown, percent)
	}
}

// Upstream: pkg/apis/autoscaling/v2/defaults.go: GenerateHPAScaleUpRules, GenerateHPAScaleDownRules
// Upstream: pkg/apis/autoscaling/v2/defaults.go: copyHPAScalingRules
func defaultScaling(rules *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	SetPointer(&rules.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if rules.Policies == nil {
		rules.Policies = policies
	}
}
