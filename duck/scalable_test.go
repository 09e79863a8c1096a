// SPDX-License-Identifier: Apache-2.0

package duck_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Scalable is a duck type for objects with a number of replicas.
type Scalable struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ScalableSpec   `json:"spec"`
	Status            ScalableStatus `json:"status,omitempty"`
}

type ScalableSpec struct {
	Replicas *int32 `json:"replicas,omitempty"`
	// Strategy has a different shape in each kind.
	Strategy map[string]any `json:"strategy,omitempty"`
	// Containers have a merge key, as the containers of a Pod do.
	Containers []ScalableContainer `json:"containers,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

type ScalableContainer struct {
	Name  string `json:"name"`
	Image string `json:"image,omitempty"`
}

type ScalableStatus struct {
	Replicas int32 `json:"replicas,omitempty"`
}

func (s *Scalable) DeepCopy() *Scalable {
	out := new(*s)
	out.ObjectMeta = *s.ObjectMeta.DeepCopy()
	if s.Spec.Replicas != nil {
		out.Spec.Replicas = new(*s.Spec.Replicas)
	}
	out.Spec.Strategy = runtime.DeepCopyJSON(s.Spec.Strategy)
	out.Spec.Containers = slices.Clone(s.Spec.Containers)
	return out
}

func (s *Scalable) DeepCopyObject() runtime.Object { return s.DeepCopy() }

type ScalableList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Scalable `json:"items"`
}

func (l *ScalableList) DeepCopyObject() runtime.Object {
	out := &ScalableList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for _, item := range l.Items {
		out.Items = append(out.Items, *item.DeepCopy())
	}
	return out
}

// deployment is the kind that Scalable stands for in the tests.
var (
	deployment     = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	deploymentList = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}
)

func scalable(name string) *Scalable {
	return &Scalable{TypeMeta: deployment, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}
