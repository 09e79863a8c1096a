// SPDX-License-Identifier: Apache-2.0

//nolint:staticcheck // some kinds use methods of conditions without a context, as older versions did
package generations

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/apis"
)

// Function is built from source. It is the resource of most documented examples. Its status methods take no context, as
// documented.
type Function struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FunctionSpec   `json:"spec"`
	Status FunctionStatus `json:"status,omitempty"`
}

type FunctionSpec struct {
	Source *string `json:"source,omitempty"`
	Image  string  `json:"image,omitempty"`
}

type FunctionStatus struct {
	apis.Status `json:",inline"`

	TargetImage   string `json:"targetImage,omitempty"`
	LatestImage   string `json:"latestImage,omitempty"`
	KpackImageRef string `json:"kpackImageRef,omitempty"`
}

var functionConditions = apis.NewLivingConditionSet("ImageResolved", "BuildReady")

func (s *FunctionStatus) InitializeConditions() {
	functionConditions.Manage(s).InitializeConditions()
}

func (s *FunctionStatus) MarkImageResolved() {
	functionConditions.Manage(s).MarkTrue("ImageResolved", "Resolved", "")
}

func (s *FunctionStatus) MarkBuildNotUsed() {
	functionConditions.Manage(s).MarkTrue("BuildReady", "NotUsed", "")
}

func (s *FunctionStatus) PropagateImageStatus(latest string) {
	if latest == "" {
		functionConditions.Manage(s).MarkUnknown("BuildReady", "Building", "")
		return
	}
	functionConditions.Manage(s).MarkTrue("BuildReady", "Built", "")
}

type FunctionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Function `json:"items"`
}

// Image is the child of a Function.
type Image struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ImageSpec   `json:"spec"`
	Status ImageStatus `json:"status,omitempty"`
}

type ImageSpec struct {
	Tag string `json:"tag"`
}

type ImageStatus struct {
	LatestImage string `json:"latestImage,omitempty"`
}

type ImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Image `json:"items"`
}

// ImageRef is a duck type: the part of a Function, and of other kinds, that selects the image. It is not registered in
// a scheme.
type ImageRef struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ImageRefSpec `json:"spec"`
}

type ImageRefSpec struct {
	Image string `json:"image,omitempty"`
}

// Gateway takes its image from a ConfigMap.
type Gateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status GatewayStatus `json:"status,omitempty"`
}

// GatewayStatus is the contract of a status, without embedding.
type GatewayStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	GatewayImage string       `json:"gatewayImage,omitempty"`
	StartedAt    *metav1.Time `json:"startedAt,omitempty"`
}

type GatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gateway `json:"items"`
}

func (f *Function) DeepCopyObject() runtime.Object     { return copied(f) }
func (l *FunctionList) DeepCopyObject() runtime.Object { return copied(l) }
func (i *Image) DeepCopyObject() runtime.Object        { return copied(i) }
func (l *ImageList) DeepCopyObject() runtime.Object    { return copied(l) }
func (r *ImageRef) DeepCopyObject() runtime.Object     { return copied(r) }
func (g *Gateway) DeepCopyObject() runtime.Object      { return copied(g) }
func (l *GatewayList) DeepCopyObject() runtime.Object  { return copied(l) }

func newFunction() *Function {
	return &Function{
		TypeMeta: metav1.TypeMeta{APIVersion: group.String(), Kind: "Function"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  "default",
			Name:       "square",
			UID:        "f-1",
			Generation: 1,
			Labels:     map[string]string{"team": "math"},
		},
		Spec: FunctionSpec{Source: new("https://git.example.com/square"), Image: "registry.example.com/square"},
	}
}

func newGateway() *Gateway {
	return &Gateway{
		TypeMeta:   metav1.TypeMeta{APIVersion: group.String(), Kind: "Gateway"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "in-memory", UID: "g-1", Generation: 1},
	}
}
