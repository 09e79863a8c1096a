// SPDX-License-Identifier: Apache-2.0

// Package api has the kind that the workloads reconcile. It is small on purpose: what a reconcile costs beyond what the
// kind costs shows best.
//
// +kubebuilder:object:generate=true
// +groupName=benchmarks.trueup.dev
// +versionName=v1
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Widget is a parent of children.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetSpec says what is to be there.
type WidgetSpec struct {
	// Data is what each child holds.
	// +optional
	Data map[string]string `json:"data,omitempty"`

	// Children is the number of children, where a workload has many under one parent.
	// +optional
	Children int32 `json:"children,omitempty"`

	// Source is the name of a ConfigMap that the widget depends on and does not own.
	// +optional
	Source string `json:"source,omitempty"`
}

// WidgetStatus says what is there.
type WidgetStatus struct {
	// ObservedGeneration is the generation of the spec that the rest of the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Child is the name of the one child, or of the source.
	// +optional
	Child string `json:"child,omitempty"`

	// Children is the number of children.
	// +optional
	Children int32 `json:"children,omitempty"`

	// Conditions has one of each child, where a workload has different ones.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WidgetList is a list of widgets.
//
// +kubebuilder:object:root=true
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}
