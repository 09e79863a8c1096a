// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// count is a number in a status. It may count some of the replicas, which cannot be more than all.
type count struct {
	name     string
	value    int64
	replicas bool
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDeploymentStatus, ValidateReplicaSetStatus
// Upstream: pkg/apis/apps/validation/validation.go: ValidateStatefulSetStatus, validateDaemonSetStatus
func validateCounts(all int32, counts ...count) field.ErrorList {
	var errs field.ErrorList
	for _, c := range counts {
		errs = append(errs, validation.ValidateNonnegativeField(c.value, statusPath.Child(c.name))...)
	}
	for _, c := range counts {
		if c.replicas && c.value > int64(all) {
			errs = append(errs, field.Invalid(statusPath.Child(c.name), c.value, "cannot be greater than status.replicas"))
		}
	}
	return errs
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDeploymentStatus, ValidateStatefulSetStatus
func validateAvailable(available, ready int32, of string) field.ErrorList {
	if available <= ready {
		return nil
	}
	return field.ErrorList{
		field.Invalid(statusPath.Child("availableReplicas"), available, "cannot be greater than "+of),
	}
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDeploymentStatusUpdate, ValidateDaemonSetStatusUpdate
func validateCollisions(n, before *int32) field.ErrorList {
	if before == nil || n != nil && *n >= *before {
		return nil
	}
	return field.ErrorList{field.Invalid(statusPath.Child("collisionCount"), number(n), "cannot be decremented")}
}

func number[N int32 | int64](n *N) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDeploymentStatus, ValidateDeploymentStatusUpdate
func validateDeploymentStatus(d, old *appsv1.Deployment) field.ErrorList {
	s := &d.Status
	errs := validateCounts(
		s.Replicas,
		count{"observedGeneration", s.ObservedGeneration, false},
		count{"replicas", int64(s.Replicas), false},
		count{"updatedReplicas", int64(s.UpdatedReplicas), true},
		count{"readyReplicas", int64(s.ReadyReplicas), true},
		count{"availableReplicas", int64(s.AvailableReplicas), true},
		count{"unavailableReplicas", int64(s.UnavailableReplicas), false},
		count{"terminatingReplicas", number(s.TerminatingReplicas), false},
		count{"collisionCount", number(s.CollisionCount), false},
	)
	errs = append(errs, validateAvailable(s.AvailableReplicas, s.ReadyReplicas, "readyReplicas")...)
	return append(errs, validateCollisions(s.CollisionCount, old.Status.CollisionCount)...)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateReplicaSetStatus
func validateReplicaSetStatus(r, _ *appsv1.ReplicaSet) field.ErrorList {
	s := &r.Status
	return append(validateCounts(
		s.Replicas,
		count{"replicas", int64(s.Replicas), false},
		count{"fullyLabeledReplicas", int64(s.FullyLabeledReplicas), true},
		count{"readyReplicas", int64(s.ReadyReplicas), true},
		count{"availableReplicas", int64(s.AvailableReplicas), true},
		count{"observedGeneration", s.ObservedGeneration, false},
		count{"terminatingReplicas", number(s.TerminatingReplicas), false},
	), validateAvailable(s.AvailableReplicas, s.ReadyReplicas, "readyReplicas")...)
}

// Upstream: pkg/apis/core/validation/validation.go: ValidateReplicationControllerStatus
func validateReplicationControllerStatus(r, _ *corev1.ReplicationController) field.ErrorList {
	s := &r.Status
	return append(validateCounts(
		s.Replicas,
		count{"replicas", int64(s.Replicas), false},
		count{"fullyLabeledReplicas", int64(s.FullyLabeledReplicas), true},
		count{"readyReplicas", int64(s.ReadyReplicas), true},
		count{"availableReplicas", int64(s.AvailableReplicas), true},
		count{"observedGeneration", s.ObservedGeneration, false},
	), validateAvailable(s.AvailableReplicas, s.ReadyReplicas, "readyReplicas")...)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateStatefulSetStatus, ValidateStatefulSetStatusUpdate
func validateStatefulSetStatus(set, old *appsv1.StatefulSet) field.ErrorList {
	s := &set.Status
	errs := validateCounts(
		s.Replicas,
		count{"replicas", int64(s.Replicas), false},
		count{"readyReplicas", int64(s.ReadyReplicas), true},
		count{"currentReplicas", int64(s.CurrentReplicas), true},
		count{"updatedReplicas", int64(s.UpdatedReplicas), true},
		count{"availableReplicas", int64(s.AvailableReplicas), true},
		count{"observedGeneration", s.ObservedGeneration, false},
		count{"collisionCount", number(s.CollisionCount), false},
	)
	errs = append(errs, validateAvailable(s.AvailableReplicas, s.ReadyReplicas, "status.readyReplicas")...)
	return append(errs, validateCollisions(s.CollisionCount, old.Status.CollisionCount)...)
}

// Upstream: pkg/apis/apps/validation/validation.go: validateDaemonSetStatus, ValidateDaemonSetStatusUpdate
func validateDaemonSetStatus(d, old *appsv1.DaemonSet) field.ErrorList {
	s := &d.Status
	return append(validateCounts(
		0,
		count{"currentNumberScheduled", int64(s.CurrentNumberScheduled), false},
		count{"numberMisscheduled", int64(s.NumberMisscheduled), false},
		count{"desiredNumberScheduled", int64(s.DesiredNumberScheduled), false},
		count{"numberReady", int64(s.NumberReady), false},
		count{"observedGeneration", s.ObservedGeneration, false},
		count{"updatedNumberScheduled", int64(s.UpdatedNumberScheduled), false},
		count{"numberAvailable", int64(s.NumberAvailable), false},
		count{"numberUnavailable", int64(s.NumberUnavailable), false},
		count{"collisionCount", number(s.CollisionCount), false},
	), validateCollisions(s.CollisionCount, old.Status.CollisionCount)...)
}

// Upstream: pkg/apis/policy/validation/validation.go: ValidatePodDisruptionBudgetStatusUpdate
func validateBudgetStatus(b, _ *policyv1.PodDisruptionBudget) field.ErrorList {
	errs := metavalidation.ValidateConditions(b.Status.Conditions, statusPath.Child("conditions"))
	errs = append(errs, notNegative(&b.Status.DisruptionsAllowed, statusPath.Child("disruptionsAllowed"))...)
	errs = append(errs, notNegative(&b.Status.CurrentHealthy, statusPath.Child("currentHealthy"))...)
	errs = append(errs, notNegative(&b.Status.DesiredHealthy, statusPath.Child("desiredHealthy"))...)
	return append(errs, notNegative(&b.Status.ExpectedPods, statusPath.Child("expectedPods"))...)
}

// validateNamespaceStatus checks that the phase of a namespace matches its deletion.
// Upstream: pkg/apis/core/validation/validation.go: ValidateNamespaceStatusUpdate
func validateNamespaceStatus(n, _ *corev1.Namespace) field.ErrorList {
	at := statusPath.Child("Phase")
	switch deleted := n.DeletionTimestamp != nil; {
	case deleted && n.Status.Phase != corev1.NamespaceTerminating:
		return field.ErrorList{
			field.Invalid(at, n.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"),
		}
	case !deleted && n.Status.Phase != corev1.NamespaceActive:
		return field.ErrorList{field.Invalid(at, n.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty")}
	}
	return nil
}
