// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has the kind Processor.
package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmware-labs/reconciler-runtime/apis"
	"github.com/vmware-labs/reconciler-runtime/validation"
)

var GroupVersion = schema.GroupVersion{Group: "streaming.example.com", Version: "v1alpha1"}

const (
	ProcessorConditionReady                           = apis.ConditionReady
	ProcessorConditionDeployed     apis.ConditionType = "Deployed"
	ProcessorConditionStreamsReady apis.ConditionType = "StreamsReady"
)

var processorConditions = apis.NewLivingConditionSet(
	ProcessorConditionDeployed,
	ProcessorConditionStreamsReady,
)

// Processor reads from streams.
type Processor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProcessorSpec   `json:"spec,omitempty"`
	Status ProcessorStatus `json:"status,omitempty"`
}

type ProcessorSpec struct {
	Image   string   `json:"image,omitempty"`
	Inputs  []string `json:"inputs,omitempty"`
	Outputs []string `json:"outputs,omitempty"`
}

type ProcessorStatus struct {
	apis.Status `json:",inline"`

	ProcessorImage string `json:"processorImage,omitempty"`
	DeploymentRef  string `json:"deploymentRef,omitempty"`
}

type ProcessorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Processor `json:"items"`
}

var (
	_ validation.FieldValidator = (*Processor)(nil)
	_ apis.Object               = (*Processor)(nil)
)

// Validate is called by the webhook.
func (p *Processor) Validate() validation.FieldErrors {
	errs := validation.FieldErrors{}
	errs = errs.Also(p.Spec.Validate().ViaField("spec"))
	return errs
}

func (s *ProcessorSpec) Validate() validation.FieldErrors {
	errs := validation.FieldErrors{}
	if s.Image == "" {
		errs = errs.Also(validation.ErrMissingField("image"))
	}
	// at least one stream
	if len(s.Inputs) == 0 && len(s.Outputs) == 0 {
		errs = errs.Also(validation.ErrMissingOneOf("inputs", "outputs"))
	}
	for i, input := range s.Inputs {
		errs = errs.Also(validateStream(input).ViaFieldIndex("inputs", i))
	}
	for i, output := range s.Outputs {
		errs = errs.Also(validateStream(output).ViaIndex(i).ViaField("outputs"))
	}
	return errs
}

func validateStream(name string) validation.FieldErrors {
	if name == "" {
		return validation.ErrInvalidValue(name, validation.CurrentField)
	}
	return nil
}

func (s *ProcessorStatus) InitializeConditions() {
	processorConditions.Manage(s).InitializeConditions()
}

func (s *ProcessorStatus) IsReady() bool {
	return processorConditions.Manage(s).IsHappy()
}

func (s *ProcessorStatus) GetDeployed() *apis.Condition {
	return s.GetCondition(ProcessorConditionDeployed)
}

func (s *ProcessorStatus) IsDeployed() bool {
	return s.GetCondition(ProcessorConditionDeployed).IsTrue()
}

func (s *ProcessorStatus) MarkStreamsReady() {
	processorConditions.Manage(s).MarkTrue(ProcessorConditionStreamsReady)
}

func (s *ProcessorStatus) MarkStreamsNotReady(message string) {
	processorConditions.Manage(s).MarkFalse(ProcessorConditionStreamsReady, "StreamsNotReady", message)
}

func (s *ProcessorStatus) PropagateDeployment(cm *corev1.ConfigMap) {
	if cm == nil {
		processorConditions.Manage(s).MarkUnknown(ProcessorConditionDeployed, "NotFound", "")
		return
	}
	s.DeploymentRef = cm.Name
	processorConditions.Manage(s).MarkTrue(ProcessorConditionDeployed)
}

// MarkDeployedAs is for conditions that come from elsewhere.
func (s *ProcessorStatus) MarkDeployedAs(conditions apis.Conditions) {
	for i := range conditions {
		condition := &conditions[i]
		if condition.Type == ProcessorConditionDeployed && condition.IsFalse() {
			processorConditions.Manage(s).MarkFalse(ProcessorConditionDeployed, condition.Reason, condition.Message)
		}
	}
}

func AddToScheme(scheme *runtime.Scheme) error {
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(GroupVersion, &Processor{}, &ProcessorList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

func (p *Processor) DeepCopy() *Processor {
	copied := *p
	copied.ObjectMeta = *p.ObjectMeta.DeepCopy()
	copied.Spec.Inputs = append([]string(nil), p.Spec.Inputs...)
	copied.Spec.Outputs = append([]string(nil), p.Spec.Outputs...)
	copied.Status.Status = *p.Status.Status.DeepCopy()
	return &copied
}

func (p *Processor) DeepCopyObject() runtime.Object { return p.DeepCopy() }

func (l *ProcessorList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopy())
	}
	return &copied
}
