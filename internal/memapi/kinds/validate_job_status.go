// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// jobStatusRules are contradictions in the status of a job. A status that had one before may keep it.
var jobStatusRules = []struct {
	violated func(*batchv1.Job) bool
	err      func(*batchv1.JobStatus) *field.Error
}{
	{
		func(j *batchv1.Job) bool { return jobIs(j, batchv1.JobComplete) && jobIs(j, batchv1.JobFailed) },
		badConditions("cannot set Complete=True and Failed=true conditions"),
	},
	{
		func(j *batchv1.Job) bool { return jobIs(j, batchv1.JobComplete) && jobIs(j, batchv1.JobFailureTarget) },
		badConditions("cannot set Complete=True and FailureTarget=true conditions"),
	},
	{
		func(j *batchv1.Job) bool { return j.Status.CompletionTime != nil && !jobIs(j, batchv1.JobComplete) },
		func(s *batchv1.JobStatus) *field.Error {
			return field.Invalid(
				statusPath.Child("completionTime"), s.CompletionTime,
				"cannot set completionTime when there is no Complete=True condition",
			)
		},
	},
	{
		func(j *batchv1.Job) bool { return j.Status.CompletionTime == nil && jobIs(j, batchv1.JobComplete) },
		func(*batchv1.JobStatus) *field.Error {
			return field.Required(statusPath.Child("completionTime"), "completionTime is required for Complete jobs")
		},
	},
	{
		func(j *batchv1.Job) bool {
			return j.Status.StartTime != nil && j.Status.CompletionTime != nil &&
				j.Status.CompletionTime.Before(j.Status.StartTime)
		},
		func(s *batchv1.JobStatus) *field.Error {
			return field.Invalid(statusPath.Child("completionTime"), s.CompletionTime, "must be equal to or after `startTime`")
		},
	},
	{
		func(j *batchv1.Job) bool { return jobIs(j, batchv1.JobFailed) && !jobIs(j, batchv1.JobFailureTarget) },
		badConditions("cannot set Failed=True condition without the FailureTarget=true condition"),
	},
	{
		func(j *batchv1.Job) bool {
			return jobIs(j, batchv1.JobComplete) && !jobIs(j, batchv1.JobSuccessCriteriaMet)
		},
		badConditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition"),
	},
	{
		func(j *batchv1.Job) bool { return j.Status.Active > 0 && jobIsFinished(j) },
		func(s *batchv1.JobStatus) *field.Error {
			return field.Invalid(statusPath.Child("active"), s.Active, "active>0 is invalid for finished job")
		},
	},
	{
		func(j *batchv1.Job) bool {
			skipped := j.Spec.Suspend != nil && *j.Spec.Suspend && j.Spec.Completions != nil && *j.Spec.Completions == 0
			return j.Status.StartTime == nil && jobIsFinished(j) && !skipped
		},
		func(*batchv1.JobStatus) *field.Error {
			return field.Required(statusPath.Child("startTime"), "startTime is required for finished job")
		},
	},
	{
		func(j *batchv1.Job) bool { return number(j.Status.Terminating) > 0 && jobIsFinished(j) },
		func(s *batchv1.JobStatus) *field.Error {
			return field.Invalid(statusPath.Child("terminating"), s.Terminating, "terminating>0 is invalid for finished job")
		},
	},
	{
		func(j *batchv1.Job) bool { return j.Status.Ready != nil && *j.Status.Ready > j.Status.Active },
		func(s *batchv1.JobStatus) *field.Error {
			return field.Invalid(statusPath.Child("ready"), *s.Ready, "cannot set more ready pods than active")
		},
	},
}

// contradiction is how messages name a condition that excludes success.
var contradiction = map[batchv1.JobConditionType]string{
	batchv1.JobFailed: "Failed=true", batchv1.JobFailureTarget: "FailureTarget=true",
}

func badConditions(message string) func(*batchv1.JobStatus) *field.Error {
	return func(*batchv1.JobStatus) *field.Error {
		return field.Invalid(statusPath.Child("conditions"), field.OmitValueType{}, message)
	}
}

func jobIs(j *batchv1.Job, condition batchv1.JobConditionType) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == condition {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// resumes reports whether a status says for the first time that a job is no longer suspended.
func resumes(j, old *batchv1.Job) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobSuspended {
			return c.Status == corev1.ConditionFalse && jobIs(old, batchv1.JobSuspended)
		}
	}
	return false
}

func isIndexed(j *batchv1.Job) bool {
	return j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion
}

func jobIsFinished(j *batchv1.Job) bool {
	return jobIs(j, batchv1.JobComplete) || jobIs(j, batchv1.JobFailed)
}

// Upstream: pkg/apis/batch/validation/validation.go: validateJobStatus, ValidateJobUpdateStatus
// Upstream: pkg/apis/batch/validation/validation.go: ValidateJobStatusUpdate
// Upstream: pkg/registry/batch/job/strategy.go: getStatusValidationOptions
func validateJobStatus(j, old *batchv1.Job) field.ErrorList {
	s, before := &j.Status, &old.Status
	var errs field.ErrorList
	errs = append(errs, notNegative(&s.Active, statusPath.Child("active"))...)
	errs = append(errs, notNegative(&s.Succeeded, statusPath.Child("succeeded"))...)
	errs = append(errs, notNegative(&s.Failed, statusPath.Child("failed"))...)
	errs = append(errs, notNegative(s.Ready, statusPath.Child("ready"))...)
	errs = append(errs, notNegative(s.Terminating, statusPath.Child("terminating"))...)
	for _, rule := range jobStatusRules {
		if rule.violated(j) && !rule.violated(old) {
			errs = append(errs, rule.err(s))
		}
	}
	for _, failure := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobFailureTarget} {
		if jobIs(j, batchv1.JobSuccessCriteriaMet) && jobIs(j, failure) {
			errs = append(errs, badConditions(
				"cannot set SuccessCriteriaMet=True and "+contradiction[failure]+" conditions")(s))
		}
	}
	for _, terminal := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobComplete, batchv1.JobFailureTarget} {
		if jobIs(old, terminal) && !jobIs(j, terminal) {
			errs = append(
				errs,
				field.Invalid(
					statusPath.Child("conditions"), field.OmitValueType{},
					"cannot disable the terminal "+string(terminal)+"=True condition",
				),
			)
		}
	}
	if s.Failed < before.Failed {
		errs = append(errs, field.Invalid(statusPath.Child("failed"), s.Failed, "cannot decrease the failed counter"))
	}
	scales := isIndexed(j) && j.Spec.Completions != nil && number(j.Spec.Completions) == number(j.Spec.Parallelism)
	if s.Succeeded < before.Succeeded && !scales {
		errs = append(
			errs, field.Invalid(statusPath.Child("succeeded"), s.Succeeded, "cannot decrease the succeeded counter"),
		)
	}
	if s.CompletionTime != nil && before.CompletionTime != nil && !s.CompletionTime.Equal(before.CompletionTime) {
		errs = append(errs, field.Invalid(statusPath.Child("completionTime"), s.CompletionTime, "field is immutable"))
	}
	if suspended := j.Spec.Suspend != nil && *j.Spec.Suspend; before.StartTime != nil &&
		!before.StartTime.Equal(s.StartTime) && !suspended && !resumes(j, old) {
		errs = append(
			errs, field.Invalid(statusPath.Child("startTime"), s.StartTime, "field is immutable for unsuspended job once set"),
		)
	}
	if jobIs(old, batchv1.JobSuccessCriteriaMet) && !jobIs(j, batchv1.JobSuccessCriteriaMet) {
		errs = append(
			errs,
			field.Invalid(
				statusPath.Child("conditions"), field.OmitValueType{}, "cannot disable the SuccessCriteriaMet=True condition",
			),
		)
	}
	return errs
}
