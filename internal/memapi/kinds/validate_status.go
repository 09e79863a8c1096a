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

// count is a number in a status that must not exceed the number of replicas, and may be limited by the ready ones.
type count struct {
	name  string
	value int32
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDeploymentStatus, ValidateReplicaSetStatus
// Upstream: pkg/apis/apps/validation/validation.go: ValidateStatefulSetStatus
func validateCounts(replicas int32, counts []count, ready, available int32, availableMessage string) field.ErrorList {
	errs := validation.ValidateNonnegativeField(int64(replicas), statusPath.Child("replicas"))
	for _, c := range counts {
		errs = append(errs, validation.ValidateNonnegativeField(int64(c.value), statusPath.Child(c.name))...)
	}
	for _, c := range counts {
		if c.value > replicas {
			errs = append(errs, field.Invalid(statusPath.Child(c.name), c.value, "cannot be greater than status.replicas"))
		}
	}
	if available > ready {
		errs = append(errs, field.Invalid(statusPath.Child("availableReplicas"), available, availableMessage))
	}
	return errs
}

const greaterThanReady = "cannot be greater than readyReplicas"

// Upstream: pkg/apis/apps/validation/validation.go: ValidateDeploymentStatus
func validateDeploymentStatus(d, _ *appsv1.Deployment) field.ErrorList {
	s := &d.Status
	return validateCounts(s.Replicas,
		[]count{
			{"updatedReplicas", s.UpdatedReplicas},
			{"readyReplicas", s.ReadyReplicas},
			{"availableReplicas", s.AvailableReplicas},
		},
		s.ReadyReplicas, s.AvailableReplicas, greaterThanReady)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateReplicaSetStatus
func validateReplicaSetStatus(r, _ *appsv1.ReplicaSet) field.ErrorList {
	s := &r.Status
	return validateCounts(s.Replicas,
		[]count{
			{"fullyLabeledReplicas", s.FullyLabeledReplicas},
			{"readyReplicas", s.ReadyReplicas},
			{"availableReplicas", s.AvailableReplicas},
		},
		s.ReadyReplicas, s.AvailableReplicas, greaterThanReady)
}

// Upstream: pkg/apis/core/validation/validation.go: ValidateReplicationControllerStatus
func validateReplicationControllerStatus(r, _ *corev1.ReplicationController) field.ErrorList {
	s := &r.Status
	return validateCounts(s.Replicas,
		[]count{
			{"fullyLabeledReplicas", s.FullyLabeledReplicas},
			{"readyReplicas", s.ReadyReplicas},
			{"availableReplicas", s.AvailableReplicas},
		},
		s.ReadyReplicas, s.AvailableReplicas, greaterThanReady)
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateStatefulSetStatus
func validateStatefulSetStatus(s, _ *appsv1.StatefulSet) field.ErrorList {
	status := &s.Status
	return validateCounts(status.Replicas, []count{
		{"readyReplicas", status.ReadyReplicas},
		{"currentReplicas", status.CurrentReplicas},
		{"updatedReplicas", status.UpdatedReplicas},
		{"availableReplicas", status.AvailableReplicas},
	}, status.ReadyReplicas, status.AvailableReplicas, "cannot be greater than status.readyReplicas")
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
