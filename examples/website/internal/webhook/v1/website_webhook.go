// SPDX-License-Identifier: Apache-2.0

// Package v1 has the admission webhooks of the kind Website. They see a Website before it is stored:
//
//	website_defaults.go     fills in what a schema cannot: what depends on other fields
//	website_validation.go   refuses what a schema cannot: what depends on other objects, and deletions
//
// Webhooks are reconcilers like any other, below an AdmissionWebhookAdapter. What they change of the resource becomes a
// patch; what they want refused, they say on the response.
//
// The controller does not rely on them. A webhook can be switched off, and what it has let pass can be wrong a moment
// later, so all that must hold is checked by the schema or by the controller as well. Webhooks are there to help
// authors.
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

// The paths that the markers above name.
const (
	defaultingPath = "/mutate-demo-trueup-dev-v1-website"
	validatingPath = "/validate-demo-trueup-dev-v1-website"
)

// SetupWebsiteWebhookWithManager serves both webhooks from the manager's webhook server.
func SetupWebsiteWebhookWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := indexDomains(ctx, mgr); err != nil {
		return err
	}
	// Nothing is tracked in answering a request, so there is no sync period to tell.
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

// NewDefaultingWebhook returns the webhook that fills in fields.
func NewDefaultingWebhook(c reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*websitev1.Website] {
	return &reconcilers.AdmissionWebhookAdapter[*websitev1.Website]{
		Name:       "WebsiteDefaulting",
		Reconciler: Defaults(),
		Config:     c,
	}
}

// NewValidatingWebhook returns the webhook that refuses requests.
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

// domainField is an index of the cache: Websites by their domain.
const domainField = "spec.domain"

func indexDomains(ctx context.Context, mgr ctrl.Manager) error {
	return mgr.GetFieldIndexer().IndexField(ctx, &websitev1.Website{}, domainField, func(obj client.Object) []string {
		return []string{obj.(*websitev1.Website).Spec.Domain}
	})
}
