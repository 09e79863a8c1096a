// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/observation"
)

// conditionsOf returns the conditions of a resource, or nil if its status has no conditions of the expected type.
func (s *statusType) conditionsOf(obj client.Object) []metav1.Condition {
	if conditions := s.Conditions(obj); conditions != nil {
		return *conditions
	}
	return nil
}

// changeConditions changes the conditions of a resource. It does nothing if its status has no conditions of the
// expected type.
func (s *statusType) changeConditions(obj client.Object, change func(conditions *[]metav1.Condition)) {
	if conditions := s.Conditions(obj); conditions != nil {
		change(conditions)
	}
}

func conditionOf(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// withGeneration returns a context in which the apis package sets the observedGeneration of the conditions of obj.
func (s *statusType) withGeneration(ctx context.Context, obj client.Object) (context.Context, *observation.Observation) {
	status := s.Value(obj)
	if !s.HasConditions() || !status.IsValid() || obj.GetGeneration() == 0 {
		return ctx, nil
	}
	return observation.WithGeneration(ctx, obj.GetGeneration(), status)
}

// observeConditions sets the observedGeneration of the conditions of obj that are new or changed since original, and of
// conditions whose observedGeneration was cleared. If all reconcilers have run, it also updates the conditions that
// InitializeConditions manages. It does not change an observedGeneration that the user set, nor the conditions of other
// writers.
func (s *statusType) observeConditions(obj, original client.Object, observation *observation.Observation, all bool) {
	generation := observation.Generation()
	if generation == 0 {
		return
	}
	conditions, originals := s.conditionsOf(obj), s.conditionsOf(original)
	for i := range conditions {
		c, old := &conditions[i], conditionOf(originals, conditions[i].Type)
		before := metav1.Condition{}
		if old != nil {
			before = *old
		}
		changed := old == nil || c.Status != before.Status || c.Reason != before.Reason || c.Message != before.Message
		switch observed := c.ObservedGeneration; {
		case observed == 0 && (changed || before.ObservedGeneration != 0):
			c.ObservedGeneration = generation
		case changed && observed == before.ObservedGeneration && observed < generation && !observation.IsSummary(c.Type):
			c.ObservedGeneration = generation // the condition was changed in place
		case all && 0 < observed && observed < generation && observation.IsManaged(c.Type):
			c.ObservedGeneration = generation
		}
	}
}

// keepTransitionTimes restores the transition time of each condition of obj whose status is the same as in original.
// The transition time is the time of the last change of the status, not of the reason or message.
func (s *statusType) keepTransitionTimes(obj, original client.Object) {
	conditions, originals := s.conditionsOf(obj), s.conditionsOf(original)
	for i := range conditions {
		if old := conditionOf(originals, conditions[i].Type); old != nil && old.Status == conditions[i].Status {
			conditions[i].LastTransitionTime = old.LastTransitionTime
		}
	}
}
