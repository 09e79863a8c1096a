// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/vmware-labs/reconciler-runtime/validation"
)

// SetupWebhookWithManager serves the webhooks of the kind.
func (p *Processor) SetupWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr).
		For(p).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-streaming-example-com-v1alpha1-processor,mutating=true,failurePolicy=fail

var _ webhook.Defaulter = &Processor{}

// Default implements webhook.Defaulter.
func (p *Processor) Default() {
	if p.Spec.Image == "" {
		p.Spec.Image = "processor"
	}
}

// +kubebuilder:webhook:path=/validate-streaming-example-com-v1alpha1-processor,mutating=false,failurePolicy=fail

var _ webhook.Validator = &Processor{}

func (p *Processor) ValidateCreate() error {
	return p.Validate().ToAggregate()
}

func (p *Processor) ValidateUpdate(old runtime.Object) error {
	errs := p.Validate()
	if before, ok := old.(*Processor); ok && len(before.Spec.Inputs) > 0 && len(p.Spec.Inputs) == 0 {
		errs = errs.Also(validation.ErrMissingField("inputs").ViaField("spec"))
	}
	return errs.ToAggregate()
}

func (p *Processor) ValidateDelete() error { return nil }
