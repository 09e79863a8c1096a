// SPDX-License-Identifier: Apache-2.0

package apis

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status is the part of a status that trueup manages. Embed it in the status of
// a custom resource:
//
//	type WebsiteStatus struct {
//		apis.Status `json:",inline"`
//		URL         string `json:"url,omitempty"`
//	}
type Status struct {
	// ObservedGeneration is the metadata.generation of the resource that this status describes. The status is outdated if
	// it differs from metadata.generation.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are the latest observations of the state of the resource.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

var _ ConditionsAccessor = (*Status)(nil)

// GetConditions returns the conditions. The slice is not a copy.
func (s *Status) GetConditions() []metav1.Condition {
	return s.Conditions
}

// SetConditions replaces all conditions. Use a [ConditionManager] to change
// one.
func (s *Status) SetConditions(c []metav1.Condition) {
	s.Conditions = c
}

// GetCondition returns a copy of the condition of type t, nil if it does not exist.
func (s *Status) GetCondition(t string) *metav1.Condition {
	return findCondition(s.Conditions, t).DeepCopy()
}
