// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var templatePath = specPath.Child("template")

// runsAlways checks the template of pods that are always restarted.
// Upstream: pkg/apis/apps/validation/validation.go: ValidatePodTemplateSpecForReplicaSet, ValidateStatefulSetSpec
// Upstream: pkg/apis/apps/validation/validation.go: ValidateDaemonSetSpec
func runsAlways(t *corev1.PodTemplateSpec, of string) field.ErrorList {
	var errs field.ErrorList
	if t.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(
			errs,
			field.NotSupported(templatePath.Child("spec", "restartPolicy"), t.Spec.RestartPolicy, []corev1.RestartPolicy{
				corev1.RestartPolicyAlways,
			}),
		)
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		errs = append(
			errs,
			field.Forbidden(
				templatePath.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+of+" is not Supported",
			),
		)
	}
	return errs
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDeploymentSpec, ValidatePodTemplateSpecForReplicaSet
func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	spec := &d.Spec
	errs := notNegative(spec.Replicas, specPath.Child("replicas"))
	errs = append(errs, selects(spec.Selector, spec.Template.Labels, "deployment")...)
	errs = append(errs, validatePodTemplate(&spec.Template, templatePath, nil)...)
	errs = append(errs, runsAlways(&spec.Template, "ReplicaSet")...)
	errs = append(errs, validateDeploymentStrategy(&spec.Strategy, specPath.Child("strategy"))...)
	errs = append(errs, notNegative(&spec.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	errs = append(errs, notNegative(spec.RevisionHistoryLimit, specPath.Child("revisionHistoryLimit"))...)
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil {
		errs = append(errs, notNegative(deadline, specPath.Child("progressDeadlineSeconds"))...)
		if *deadline <= spec.MinReadySeconds {
			errs = append(
				errs, field.Invalid(specPath.Child("progressDeadlineSeconds"), *deadline, "must be greater than minReadySeconds"),
			)
		}
	}
	return errs
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDeploymentStrategy, ValidateRollingUpdateDeployment
func validateDeploymentStrategy(s *appsv1.DeploymentStrategy, at *field.Path) field.ErrorList {
	rolling := at.Child("rollingUpdate")
	switch {
	case s.Type != appsv1.RecreateDeploymentStrategyType && s.Type != appsv1.RollingUpdateDeploymentStrategyType:
		return field.ErrorList{
			field.NotSupported(at, s, []appsv1.DeploymentStrategyType{
				appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType,
			}),
		}
	case s.Type == appsv1.RecreateDeploymentStrategyType && s.RollingUpdate != nil:
		return field.ErrorList{field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")}
	case s.RollingUpdate == nil:
		return nil
	}
	unavailable, surge := s.RollingUpdate.MaxUnavailable, s.RollingUpdate.MaxSurge
	errs := validateIntOrPercent(unavailable, rolling.Child("maxUnavailable"), false)
	errs = append(errs, validateIntOrPercent(surge, rolling.Child("maxSurge"), false)...)
	if percent(unavailable) == 0 && percent(surge) == 0 {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), *unavailable, "may not be 0 when `maxSurge` is 0"))
	}
	return errs
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDeploymentUpdate
func validateDeploymentUpdate(d, old *appsv1.Deployment) field.ErrorList {
	return validation.ValidateImmutableField(d.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateReplicaSetSpec, ValidatePodTemplateSpecForReplicaSet
func validateReplicaSet(r *appsv1.ReplicaSet) field.ErrorList {
	errs := notNegative(r.Spec.Replicas, specPath.Child("replicas"))
	errs = append(errs, notNegative(&r.Spec.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	errs = append(errs, selects(r.Spec.Selector, r.Spec.Template.Labels, "deployment")...)
	errs = append(errs, validatePodTemplate(&r.Spec.Template, templatePath, nil)...)
	return append(errs, runsAlways(&r.Spec.Template, "ReplicaSet")...)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateReplicaSetUpdate
func validateReplicaSetUpdate(r, old *appsv1.ReplicaSet) field.ErrorList {
	return validation.ValidateImmutableField(r.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))
}

// rollingUpdate is the form of a strategy in errors.
type rollingUpdate struct {
	Partition      *int32
	MaxUnavailable *intstr.IntOrString
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateStatefulSetSpec, validateRollingUpdateStatefulSet
func validateStatefulSet(s *appsv1.StatefulSet) field.ErrorList {
	spec := &s.Spec
	var errs field.ErrorList
	if p := spec.PodManagementPolicy; p != appsv1.OrderedReadyPodManagement && p != appsv1.ParallelPodManagement {
		errs = append(errs, field.Invalid(specPath.Child("podManagementPolicy"), p, "must be 'OrderedReady' or 'Parallel'"))
	}
	at := specPath.Child("updateStrategy")
	switch strategy := spec.UpdateStrategy; strategy.Type {
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if rolling := strategy.RollingUpdate; rolling != nil {
			errs = append(errs, notNegative(rolling.Partition, at.Child("rollingUpdate", "partition"))...)
			errs = append(
				errs, validateIntOrPercent(rolling.MaxUnavailable, at.Child("rollingUpdate", "maxUnavailable"), true)...,
			)
		}
	case appsv1.OnDeleteStatefulSetStrategyType:
		if strategy.RollingUpdate != nil {
			errs = append(
				errs,
				field.Invalid(
					at.Child("rollingUpdate"), rollingUpdate(*strategy.RollingUpdate),
					"only allowed for updateStrategy 'RollingUpdate'",
				),
			)
		}
	default:
		errs = append(errs, field.Invalid(at, strategy, "must be 'RollingUpdate' or 'OnDelete'"))
	}
	errs = append(errs, notNegative(spec.Replicas, specPath.Child("replicas"))...)
	errs = append(errs, notNegative(&spec.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	errs = append(errs, selects(spec.Selector, spec.Template.Labels, "statefulset")...)
	errs = append(errs, validatePodTemplate(&spec.Template, templatePath, spec.VolumeClaimTemplates)...)
	return append(errs, runsAlways(&spec.Template, "StatefulSet")...)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateStatefulSet, validateVolumeClaimTemplates
func validateNewStatefulSet(s *appsv1.StatefulSet) field.ErrorList {
	errs := validateStatefulSet(s)
	if s.Spec.ServiceName != "" {
		errs = append(errs, dnsLabel(s.Spec.ServiceName, specPath.Child("serviceName"))...)
	}
	for i := range s.Spec.VolumeClaimTemplates {
		errs = append(
			errs,
			validateClaimSpec(
				&s.Spec.VolumeClaimTemplates[i].Spec, specPath.Child("volumeClaimTemplates").Index(i).Child("spec"),
			)...,
		)
	}
	return errs
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateStatefulSetUpdate
func validateStatefulSetUpdate(s, old *appsv1.StatefulSet) field.ErrorList {
	spec, before := &s.Spec, &old.Spec
	errs := validateStatefulSet(s)
	errs = append(errs, validation.ValidateImmutableField(spec.Selector, before.Selector, specPath.Child("selector"))...)
	errs = append(
		errs,
		validation.ValidateImmutableField(
			spec.VolumeClaimTemplates, before.VolumeClaimTemplates, specPath.Child("volumeClaimTemplates"),
		)...,
	)
	errs = append(
		errs, validation.ValidateImmutableField(spec.ServiceName, before.ServiceName, specPath.Child("serviceName"))...,
	)
	return append(
		errs,
		validation.ValidateImmutableField(
			spec.PodManagementPolicy, before.PodManagementPolicy, specPath.Child("podManagementPolicy"),
		)...,
	)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDaemonSetSpec, ValidateDaemonSetUpdateStrategy
func validateDaemonSet(d *appsv1.DaemonSet) field.ErrorList {
	errs := selects(d.Spec.Selector, d.Spec.Template.Labels, "daemonset")
	errs = append(errs, validatePodTemplate(&d.Spec.Template, templatePath, nil)...)
	errs = append(errs, runsAlways(&d.Spec.Template, "DaemonSet")...)
	errs = append(errs, notNegative(&d.Spec.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	if s := &d.Spec.UpdateStrategy; s.Type != appsv1.RollingUpdateDaemonSetStrategyType &&
		s.Type != appsv1.OnDeleteDaemonSetStrategyType {
		errs = append(errs, field.NotSupported(specPath.Child("updateStrategy"), s,
			[]appsv1.DaemonSetUpdateStrategyType{
				appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType,
			}))
	}
	return append(errs, notNegative(d.Spec.RevisionHistoryLimit, specPath.Child("revisionHistoryLimit"))...)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDaemonSetSpecUpdate
func validateDaemonSetUpdate(d, old *appsv1.DaemonSet) field.ErrorList {
	return validation.ValidateImmutableField(d.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))
}

// Upstream: pkg/apis/batch/validation/validation.go: ValidateJobCreate
func validateJob(j *batchv1.Job) field.ErrorList {
	var errs field.ErrorList
	if !*j.Spec.ManualSelector {
		errs = validateGenerated(j)
	}
	return append(errs, validateJobSelector(j)...)
}

// Upstream: pkg/apis/batch/validation/validation.go: ValidateJobSpec
func validateJobSelector(j *batchv1.Job) field.ErrorList {
	errs := validateJobSpec(&j.Spec, specPath)
	if j.Spec.Selector == nil {
		errs = append(errs, field.Required(specPath.Child("selector"), ""))
	}
	if selector, err := metav1.LabelSelectorAsSelector(j.Spec.Selector); err == nil &&
		!selector.Matches(labels.Set(j.Spec.Template.Labels)) {
		errs = append(
			errs,
			field.Invalid(
				templatePath.Child("metadata", "labels"), j.Spec.Template.Labels, "`selector` does not match template `labels`",
			),
		)
	}
	return errs
}

// validateGenerated checks that the labels and selector that are generated for a job are not set.
// Upstream: pkg/apis/batch/validation/validation.go: validateGeneratedSelector
func validateGenerated(j *batchv1.Job) field.ErrorList {
	var errs field.ErrorList
	want := labels.Set{}
	for _, label := range []struct{ name, value string }{
		{"controller-uid", string(j.UID)}, {"job-name", j.Name}, {
			batchv1.ControllerUidLabel, string(j.UID),
		}, {batchv1.JobNameLabel, j.Name},
	} {
		want[label.name] = label.value
		if got := j.Spec.Template.Labels[label.name]; got != label.value {
			errs = append(
				errs,
				field.Invalid(
					templatePath.Child("metadata", "labels").Key(label.name), j.Spec.Template.Labels,
					fmt.Sprintf("must be '%s'", label.value),
				),
			)
		}
	}
	if selector, err := metav1.LabelSelectorAsSelector(j.Spec.Selector); err == nil && !selector.Matches(want) {
		errs = append(errs, field.Invalid(specPath.Child("selector"), j.Spec.Selector, "`selector` not auto-generated"))
	}
	return errs
}

// Upstream: pkg/apis/batch/validation/validation.go: validateJobSpec
func validateJobSpec(spec *batchv1.JobSpec, at *field.Path) field.ErrorList {
	errs := notNegative(spec.Parallelism, at.Child("parallelism"))
	errs = append(errs, notNegative(spec.Completions, at.Child("completions"))...)
	errs = append(errs, notNegative(spec.ActiveDeadlineSeconds, at.Child("activeDeadlineSeconds"))...)
	errs = append(errs, notNegative(spec.BackoffLimit, at.Child("backoffLimit"))...)
	errs = append(errs, notNegative(spec.TTLSecondsAfterFinished, at.Child("ttlSecondsAfterFinished"))...)
	if spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion && spec.Completions == nil {
		errs = append(errs, field.Required(at.Child("completions"), "when completion mode is Indexed"))
	}
	errs = append(errs, validatePodTemplate(&spec.Template, at.Child("template"), nil)...)
	restart := at.Child("template", "spec", "restartPolicy")
	if policy := spec.Template.Spec.RestartPolicy; policy == corev1.RestartPolicyAlways {
		errs = append(errs, field.Required(restart, `valid values: "OnFailure", "Never"`))
	} else if spec.PodFailurePolicy != nil && policy != corev1.RestartPolicyNever {
		errs = append(errs, field.Invalid(restart, policy, `only "Never" is supported when podFailurePolicy is specified`))
	}
	return errs
}

// Upstream: pkg/apis/batch/validation/validation.go: ValidateJobSpecUpdate, validateCompletions
func validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	spec, before := &j.Spec, &old.Spec
	errs := validateJobSelector(j)
	if indexed := spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion; !indexed {
		errs = append(
			errs, validation.ValidateImmutableField(spec.Completions, before.Completions, specPath.Child("completions"))...,
		)
	} else if spec.Completions != nil && before.Completions != nil && *spec.Completions != *before.Completions &&
		*spec.Completions != *spec.Parallelism {
		errs = append(
			errs,
			field.Invalid(
				specPath.Child("completions"), spec.Completions, "can only be modified in tandem with spec.parallelism",
			),
		)
	}
	errs = append(errs, validation.ValidateImmutableField(spec.Selector, before.Selector, specPath.Child("selector"))...)
	errs = append(errs, validateJobTemplateUpdate(spec, old)...)
	errs = append(
		errs,
		validation.ValidateImmutableField(spec.CompletionMode, before.CompletionMode, specPath.Child("completionMode"))...,
	)
	errs = append(
		errs,
		validation.ValidateImmutableField(
			spec.PodFailurePolicy, before.PodFailurePolicy, specPath.Child("podFailurePolicy"),
		)...,
	)
	errs = append(
		errs,
		validation.ValidateImmutableField(
			spec.BackoffLimitPerIndex, before.BackoffLimitPerIndex, specPath.Child("backoffLimitPerIndex"),
		)...,
	)
	errs = append(
		errs, validation.ValidateImmutableField(spec.ManagedBy, before.ManagedBy, specPath.Child("managedBy"))...,
	)
	return append(
		errs, validation.ValidateImmutableField(spec.SuccessPolicy, before.SuccessPolicy, specPath.Child("successPolicy"))...,
	)
}

// validateJobTemplateUpdate allows scheduling and resources of the pods of a suspended job without pods to change.
// Upstream: pkg/apis/batch/validation/validation.go: validatePodTemplateUpdate
// Upstream: pkg/registry/batch/job/strategy.go: validationOptionsForJob, shouldAllowMutablePodTemplate
func validateJobTemplateUpdate(spec *batchv1.JobSpec, old *batchv1.Job) field.ErrorList {
	before := &old.Spec.Template
	if old.Spec.Suspend != nil && *old.Spec.Suspend && old.Status.StartTime == nil && old.Status.Active == 0 {
		before = before.DeepCopy()
		before.Annotations, before.Labels = spec.Template.Annotations, spec.Template.Labels
		before.Spec.NodeSelector, before.Spec.Tolerations = spec.Template.Spec.NodeSelector, spec.Template.Spec.Tolerations
		before.Spec.Affinity, before.Spec.SchedulingGates = spec.Template.Spec.Affinity, spec.Template.Spec.SchedulingGates
		for i := range min(len(before.Spec.Containers), len(spec.Template.Spec.Containers)) {
			before.Spec.Containers[i].Resources = spec.Template.Spec.Containers[i].Resources
		}
	}
	return validation.ValidateImmutableField(&spec.Template, before, templatePath)
}

// Upstream: pkg/apis/batch/validation/validation.go: validateCronJobSpec, validateScheduleFormat
// Upstream: pkg/apis/batch/validation/validation.go: validateConcurrencyPolicy, ValidateJobTemplateSpec
func validateCronJob(c *batchv1.CronJob) field.ErrorList {
	var errs field.ErrorList
	if schedule := c.Spec.Schedule; schedule != "" && !strings.HasPrefix(schedule, "@") {
		if fields := strings.Fields(schedule); len(fields) != 5 {
			errs = append(
				errs,
				field.Invalid(
					specPath.Child("schedule"), schedule, fmt.Sprintf("expected exactly 5 fields, found %d: %v", len(fields), fields),
				),
			)
		}
	}
	errs = append(errs, notNegative(c.Spec.StartingDeadlineSeconds, specPath.Child("startingDeadlineSeconds"))...)
	errs = append(errs, oneOf(specPath.Child("concurrencyPolicy"), c.Spec.ConcurrencyPolicy,
		batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, validateJobSpec(&c.Spec.JobTemplate.Spec, specPath.Child("jobTemplate", "spec"))...)
	if selector := c.Spec.JobTemplate.Spec.Selector; selector != nil {
		errs = append(
			errs,
			field.Invalid(specPath.Child("jobTemplate", "spec", "selector"), selector, "`selector` will be auto-generated"),
		)
	}
	errs = append(errs, notNegative(c.Spec.SuccessfulJobsHistoryLimit, specPath.Child("successfulJobsHistoryLimit"))...)
	errs = append(errs, notNegative(c.Spec.FailedJobsHistoryLimit, specPath.Child("failedJobsHistoryLimit"))...)
	if c.Spec.Schedule == "" {
		errs = append(errs, field.Required(specPath.Child("schedule"), ""))
	}
	return errs
}

// Upstream: pkg/apis/batch/validation/validation.go: ValidateCronJobCreate
func validateNewCronJob(c *batchv1.CronJob) field.ErrorList {
	errs := validateCronJob(c)
	if len(c.Name) > 52 { // the names of jobs have a suffix
		errs = append(errs, field.Invalid(metaPath.Child("name"), c.Name, "must be no more than 52 characters"))
	}
	return errs
}
