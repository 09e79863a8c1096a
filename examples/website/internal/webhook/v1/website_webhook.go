// SPDX-License-Identifier: Apache-2.0

// Package v1 contains the admission webhooks of the kind Website. They receive a Website before it is stored:
//
//	website_defaults.go     sets defaults that a schema cannot express: they depend on other fields
//	website_validation.go   rejects what a schema cannot check: it depends on other objects, or is a deletion
//
// Webhooks are ordinary reconcilers below an AdmissionWebhookAdapter. Their changes to the resource become a patch, and
// they reject a request by setting the response.
//
// The controller does not rely on them. A webhook can be disabled, and a value that it accepted can become invalid a
// moment later, so every requirement is also checked by the schema or by the controller. Webhooks give authors early
// feedback.
package v1

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

// +kubebuilder:webhookconfiguration:mutating=true,name=website-defaulting
// +kubebuilder:webhookconfiguration:mutating=false,name=website-validation
// +kubebuilder:webhook:path=/mutate-demo-trueup-dev-v1-website,mutating=true,failurePolicy=fail,sideEffects=None,groups=demo.trueup.dev,resources=websites,verbs=create;update,versions=v1,name=mwebsite-v1.demo.trueup.dev,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-demo-trueup-dev-v1-website,mutating=false,failurePolicy=fail,sideEffects=None,groups=demo.trueup.dev,resources=websites,verbs=create;update;delete,versions=v1,name=vwebsite-v1.demo.trueup.dev,admissionReviewVersions=v1

// The paths in the markers above.
const (
	defaultingPath = "/mutate-demo-trueup-dev-v1-website"
	validatingPath = "/validate-demo-trueup-dev-v1-website"
)

// SetupWebsiteWebhookWithManager serves both webhooks from the manager's webhook server.
func SetupWebsiteWebhookWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := indexDomains(ctx, mgr); err != nil {
		return err
	}
	// The webhooks track nothing, so the sync period is not used.
	c := reconcilers.NewConfig(mgr, &websitev1.Website{}, 0)
	defaulting, defaultingErr := NewDefaultingWebhook(c).BuildWithContext(ctx)
	validating, validatingErr := NewValidatingWebhook(c).BuildWithContext(ctx)
	if err := errors.Join(defaultingErr, validatingErr); err != nil {
		return err
	}
	mgr.GetWebhookServer().Register(defaultingPath, defaulting)
	mgr.GetWebhookServer().Register(validatingPath, validating)
	return nil
}

// NewDefaultingWebhook returns the webhook that sets defaults.
func NewDefaultingWebhook(c reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*websitev1.Website] {
	return &reconcilers.AdmissionWebhookAdapter[*websitev1.Website]{
		Name:       "WebsiteDefaulting",
		Reconciler: Defaults(),
		Config:     c,
	}
}

// NewValidatingWebhook returns the webhook that rejects requests.
func NewValidatingWebhook(c reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*websitev1.Website] {
	return &reconcilers.AdmissionWebhookAdapter[*websitev1.Website]{
		Name: "WebsiteValidation",
		Reconciler: reconcilers.Sequence[*websitev1.Website]{
			Protection(),
			DomainIsFree(),
		},
		Config: c,
	}
}

// domainField is an index of the cache: Websites by domain.
const domainField = "spec.domain"

func indexDomains(ctx context.Context, mgr ctrl.Manager) error {
	return mgr.GetFieldIndexer().IndexField(ctx, &websitev1.Website{}, domainField, func(obj client.Object) []string {
		return []string{obj.(*websitev1.Website).Spec.Domain}
	})
}
