// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var fidelityGroup = schema.GroupVersion{Group: "fidelity.trueup.dev", Version: "v1"}

// Gadget is a custom resource with most features of schemas.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GadgetSpec   `json:"spec,omitzero"`
	Status GadgetStatus `json:"status,omitzero"`
}

type GadgetSpec struct {
	Size     int32                        `json:"size,omitempty"`
	Mode     string                       `json:"mode,omitempty"`
	Class    string                       `json:"class,omitempty"`
	Replicas *int32                       `json:"replicas,omitempty"`
	Port     *intstr.IntOrString          `json:"port,omitempty"`
	Memory   *resource.Quantity           `json:"memory,omitempty"`
	Parts    []GadgetPart                 `json:"parts,omitempty"`
	Tags     []string                     `json:"tags,omitempty"`
	Steps    []string                     `json:"steps,omitempty"`
	Nested   *GadgetNested                `json:"nested,omitempty"`
	Limits   map[string]resource.Quantity `json:"limits,omitempty"`
	Note     *string                      `json:"note,omitempty"`
	Free     *runtime.RawExtension        `json:"free,omitempty"`
	Until    *metav1.Time                 `json:"until,omitempty"`
	Required string                       `json:"required"`
}

type GadgetPart struct {
	Name   string `json:"name"`
	Weight int32  `json:"weight,omitempty"`
}

type GadgetNested struct {
	Enabled *bool  `json:"enabled,omitempty"`
	Level   string `json:"level,omitempty"`
}

type GadgetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	Replicas           int32              `json:"replicas,omitempty"`
	Selector           string             `json:"selector,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type GadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Gadget `json:"items"`
}

// deepCopied copies via JSON, which for these types loses only the difference between nil and empty if it is omitted.
func deepCopied[T any](from *T) *T {
	into := new(T)
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		panic(err)
	}
	return into
}

func (g *Gadget) DeepCopyObject() runtime.Object     { return deepCopied(g) }
func (l *GadgetList) DeepCopyObject() runtime.Object { return deepCopied(l) }

func addGadgets(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(fidelityGroup, &Gadget{}, &GadgetList{})
	metav1.AddToGroupVersion(scheme, fidelityGroup)
	return nil
}
