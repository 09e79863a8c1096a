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
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
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
	selectorErrs, valid := selects(spec.Selector, spec.Template.Labels, "deployment")
	if errs = append(errs, selectorErrs...); valid {
		errs = append(errs, validatePodTemplate(&spec.Template, templatePath, nil)...)
		errs = append(errs, runsAlways(&spec.Template, "ReplicaSet")...)
	}
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
	errs := validateIntOrPercent(unavailable, rolling.Child("maxUnavailable"))
	errs = append(errs, validateIntOrPercent(surge, rolling.Child("maxSurge"))...)
	if percent(unavailable) == 0 && percent(surge) == 0 {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), *unavailable, "may not be 0 when `maxSurge` is 0"))
	}
	return append(errs, atMost100Percent(unavailable, rolling.Child("maxUnavailable"))...)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDeploymentUpdate
func validateDeploymentUpdate(d, old *appsv1.Deployment) field.ErrorList {
	return immutable(change{"selector", d.Spec.Selector, old.Spec.Selector})
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateReplicaSetSpec, ValidatePodTemplateSpecForReplicaSet
func validateReplicaSet(r *appsv1.ReplicaSet) field.ErrorList {
	errs := notNegative(r.Spec.Replicas, specPath.Child("replicas"))
	errs = append(errs, notNegative(&r.Spec.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	selectorErrs, valid := selects(r.Spec.Selector, r.Spec.Template.Labels, "deployment")
	if errs = append(errs, selectorErrs...); valid {
		errs = append(errs, validatePodTemplate(&r.Spec.Template, templatePath, nil)...)
		errs = append(errs, runsAlways(&r.Spec.Template, "ReplicaSet")...)
	}
	return errs
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateReplicaSetUpdate
func validateReplicaSetUpdate(r, old *appsv1.ReplicaSet) field.ErrorList {
	return immutable(change{"selector", r.Spec.Selector, old.Spec.Selector})
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
			unavailable := at.Child("rollingUpdate", "maxUnavailable")
			errs = append(errs, validateIntOrPercent(rolling.MaxUnavailable, unavailable)...)
			if rolling.MaxUnavailable != nil && percent(rolling.MaxUnavailable) == 0 {
				errs = append(errs, field.Invalid(unavailable, *rolling.MaxUnavailable, "cannot be 0"))
			}
			errs = append(errs, atMost100Percent(rolling.MaxUnavailable, unavailable)...)
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
	selectorErrs, valid := selects(spec.Selector, spec.Template.Labels, "statefulset")
	if errs = append(errs, selectorErrs...); valid {
		errs = append(errs, validatePodTemplate(&spec.Template, templatePath, spec.VolumeClaimTemplates)...)
	}
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
	return append(validateStatefulSet(s), immutable(
		change{"selector", spec.Selector, before.Selector},
		change{"volumeClaimTemplates", spec.VolumeClaimTemplates, before.VolumeClaimTemplates},
		change{"serviceName", spec.ServiceName, before.ServiceName},
		change{"podManagementPolicy", spec.PodManagementPolicy, before.PodManagementPolicy},
	)...)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDaemonSetSpec, ValidateDaemonSetUpdateStrategy
func validateDaemonSet(d *appsv1.DaemonSet) field.ErrorList {
	at := specPath.Child("selector")
	errs := metavalidation.ValidateLabelSelector(
		d.Spec.Selector, metavalidation.LabelSelectorValidationOptions{}, at,
	)
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err == nil && !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
		errs = append(errs, field.Invalid(templatePath.Child("metadata", "labels"), d.Spec.Template.Labels,
			"`selector` does not match template `labels`"))
	}
	if err == nil && d.Spec.Selector != nil && selector.Empty() {
		errs = append(errs, field.Invalid(at, d.Spec.Selector, "empty selector is invalid for daemonset"))
	}
	errs = append(errs, validatePodTemplate(&d.Spec.Template, templatePath, nil)...)
	errs = append(errs, runsAlways(&d.Spec.Template, "DaemonSet")...)
	errs = append(errs, notNegative(&d.Spec.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	switch s := &d.Spec.UpdateStrategy; s.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
	case appsv1.RollingUpdateDaemonSetStrategyType:
		errs = append(errs, validateRollingDaemons(s.RollingUpdate, specPath.Child("updateStrategy", "rollingUpdate"))...)
	default:
		errs = append(errs, field.NotSupported(specPath.Child("updateStrategy"), s,
			[]appsv1.DaemonSetUpdateStrategyType{
				appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType,
			}))
	}
	return append(errs, notNegative(d.Spec.RevisionHistoryLimit, specPath.Child("revisionHistoryLimit"))...)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateRollingUpdateDaemonSet
func validateRollingDaemons(r *appsv1.RollingUpdateDaemonSet, at *field.Path) field.ErrorList {
	unavailable, surge := at.Child("maxUnavailable"), at.Child("maxSurge")
	errs := validateIntOrPercent(r.MaxUnavailable, unavailable)
	errs = append(errs, validateIntOrPercent(r.MaxSurge, surge)...)
	errs = append(errs, atMost100Percent(r.MaxUnavailable, unavailable)...)
	errs = append(errs, atMost100Percent(r.MaxSurge, surge)...)
	switch some, extra := percent(r.MaxUnavailable) != 0, percent(r.MaxSurge) != 0; {
	case some && extra:
		errs = append(errs, field.Invalid(surge, *r.MaxSurge, "may not be set when maxUnavailable is non-zero"))
	case !some && !extra:
		errs = append(errs, field.Required(unavailable, "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDaemonSetSpecUpdate
func validateDaemonSetUpdate(d, old *appsv1.DaemonSet) field.ErrorList {
	return immutable(change{"selector", d.Spec.Selector, old.Spec.Selector})
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
	if !isIndexed(j) {
		errs = append(errs, immutable(change{"completions", spec.Completions, before.Completions})...)
	} else if spec.Completions != nil && (before.Completions == nil || *spec.Completions != *before.Completions) &&
		*spec.Completions != *spec.Parallelism {
		errs = append(
			errs,
			field.Invalid(
				specPath.Child("completions"), spec.Completions, "can only be modified in tandem with spec.parallelism",
			),
		)
	}
	errs = append(errs, immutable(change{"selector", spec.Selector, before.Selector})...)
	errs = append(errs, validateJobTemplateUpdate(spec, old)...)
	return append(errs, immutable(
		change{"completionMode", spec.CompletionMode, before.CompletionMode},
		change{"podFailurePolicy", spec.PodFailurePolicy, before.PodFailurePolicy},
		change{"backoffLimitPerIndex", spec.BackoffLimitPerIndex, before.BackoffLimitPerIndex},
		change{"managedBy", spec.ManagedBy, before.ManagedBy},
		change{"successPolicy", spec.SuccessPolicy, before.SuccessPolicy},
	)...)
}

// validateJobTemplateUpdate allows scheduling and resources of the pods of a suspended job without pods to change.
// Upstream: pkg/apis/batch/validation/validation.go: validatePodTemplateUpdate, validatePodResourceUpdatesOnly
// Upstream: pkg/registry/batch/job/strategy.go: validationOptionsForJob, shouldAllowMutablePodTemplate
func validateJobTemplateUpdate(spec *batchv1.JobSpec, old *batchv1.Job) field.ErrorList {
	before := &old.Spec.Template
	suspended := old.Spec.Suspend != nil && *old.Spec.Suspend
	if !suspended || old.Status.Active != 0 || old.Status.StartTime != nil && !jobIs(old, batchv1.JobSuspended) {
		return validation.ValidateImmutableField(&spec.Template, before, templatePath)
	}
	before = before.DeepCopy()
	pod, podBefore := &spec.Template.Spec, &before.Spec
	podBefore.NodeSelector, podBefore.Tolerations = pod.NodeSelector, pod.Tolerations
	podBefore.SchedulingGates = pod.SchedulingGates
	switch {
	case pod.Affinity != nil && podBefore.Affinity != nil:
		podBefore.Affinity.NodeAffinity = pod.Affinity.NodeAffinity
	case pod.Affinity != nil:
		podBefore.Affinity = &corev1.Affinity{NodeAffinity: pod.Affinity.NodeAffinity}
	case podBefore.Affinity != nil:
		if podBefore.Affinity.NodeAffinity = nil; *podBefore.Affinity == (corev1.Affinity{}) {
			podBefore.Affinity = nil
		}
	}
	for _, lists := range [][2][]corev1.Container{
		{pod.Containers, podBefore.Containers}, {pod.InitContainers, podBefore.InitContainers},
	} {
		for i := range lists[0] {
			if len(lists[0]) == len(lists[1]) && lists[0][i].Name == lists[1][i].Name {
				lists[1][i].Resources = lists[0][i].Resources
			}
		}
	}
	return validation.ValidateImmutableField(*pod, *podBefore, specPath.Child("template.spec"))
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
	if manual := c.Spec.JobTemplate.Spec.ManualSelector; manual != nil && *manual {
		errs = append(errs,
			field.NotSupported(specPath.Child("jobTemplate", "spec", "manualSelector"), manual, []string{"nil", "false"}))
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
