// SPDX-License-Identifier: Apache-2.0

// Package v1 has the kind Function.
package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"trueup.dev/apis"
)

var GroupVersion = schema.GroupVersion{Group: "functions.example.com", Version: "v1"}

type Function struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FunctionSpec   `json:"spec"`
	Status FunctionStatus `json:"status,omitempty"`
}

type FunctionSpec struct {
	Images []string `json:"images,omitempty"`
	Paused *bool    `json:"paused,omitempty"`
}

type FunctionStatus struct {
	apis.Status `json:",inline"`
	Theme       string `json:"theme,omitempty"`
}

type FunctionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Function `json:"items"`
}

// Images is what the spec of a Function, and of other kinds, says about images.
type Images struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Images []string `json:"images,omitempty"`
	} `json:"spec"`
}

var conditions = apis.NewLivingConditionSet("ServiceReady")

func (s *FunctionStatus) InitializeConditions() { conditions.Manage(s).InitializeConditions() }

func (s *FunctionStatus) MarkServiceReady() {
	conditions.Manage(s).MarkTrue("ServiceReady", "Ready", "")
}

func (s *FunctionStatus) MarkServiceFailed(message string) {
	conditions.Manage(s).MarkFalse("ServiceReady", "Failed", "%s", message)
}

func (f *Function) Validate() field.ErrorList {
	errs := field.ErrorList{}
	images := field.NewPath("spec", "images")
	for i, image := range f.Spec.Images {
		errs = append(errs, validateImage(images.Index(i), image)...)
	}
	return errs
}

func validateImage(path *field.Path, image string) field.ErrorList {
	if image == "" {
		return field.ErrorList{field.Required(path.Child("name"), "")}
	}
	return nil
}

func AddToScheme(scheme *runtime.Scheme) error {
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(GroupVersion, &Function{}, &FunctionList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

func (f *Function) DeepCopyObject() runtime.Object {
	copied := *f
	copied.ObjectMeta = *f.ObjectMeta.DeepCopy()
	copied.Spec.Images = append([]string(nil), f.Spec.Images...)
	copied.Status.Status = *f.Status.Status.DeepCopy()
	return &copied
}

func (l *FunctionList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Function))
	}
	return &copied
}

func (i *Images) DeepCopyObject() runtime.Object {
	copied := *i
	copied.ObjectMeta = *i.ObjectMeta.DeepCopy()
	copied.Spec.Images = append([]string(nil), i.Spec.Images...)
	return &copied
}
