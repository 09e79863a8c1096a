// SPDX-License-Identifier: Apache-2.0

// Package api defines the kind that the workloads reconcile. It is small, so that the cost of the framework is visible.
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

// WidgetSpec is the desired state of a Widget.
type WidgetSpec struct {
	// Data is the content of each child.
	// +optional
	Data map[string]string `json:"data,omitempty"`

	// Children is the number of children, in workloads with many children of one parent.
	// +optional
	Children int32 `json:"children,omitempty"`

	// Source is the name of a ConfigMap that the widget depends on and does not own.
	// +optional
	Source string `json:"source,omitempty"`
}

// WidgetStatus is the observed state of a Widget.
type WidgetStatus struct {
	// ObservedGeneration is the generation of the spec that the rest of the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Child is the name of the only child, or of the source.
	// +optional
	Child string `json:"child,omitempty"`

	// Children is the number of children.
	// +optional
	Children int32 `json:"children,omitempty"`

	// Conditions has one condition for each child, in workloads with different children.
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
