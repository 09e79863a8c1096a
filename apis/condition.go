// SPDX-License-Identifier: Apache-2.0

package apis

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ConditionReady is the happy condition of resources that reach a state and stay in it, see [NewLivingConditionSet].
	ConditionReady = "Ready"

	// ConditionSucceeded is the happy condition of resources that run to
	// completion, see [NewBatchConditionSet].
	ConditionSucceeded = "Succeeded"
)

// ConditionsAccessor is a status that holds conditions. [Status] is one.
type ConditionsAccessor interface {
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
}

// ConditionIsTrue reports whether the condition is True. It returns false for nil.
func ConditionIsTrue(c *metav1.Condition) bool {
	return c != nil && c.Status == metav1.ConditionTrue
}

// ConditionIsFalse reports whether the condition is False. It returns false for nil: a condition that was never set is
// unknown.
func ConditionIsFalse(c *metav1.Condition) bool {
	return c != nil && c.Status == metav1.ConditionFalse
}

// ConditionIsUnknown reports whether the condition is neither True nor False. It returns true for nil and for a
// condition without a status.
func ConditionIsUnknown(c *metav1.Condition) bool {
	return !ConditionIsTrue(c) && !ConditionIsFalse(c)
}

// findCondition returns the condition of type t, which is not a copy, or nil if it does not exist.
func findCondition(conditions []metav1.Condition, t string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}
