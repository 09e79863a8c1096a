// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"trueup.dev/operator"
	"trueup.dev/resource"
)

// WebhookConfigurations returns the configurations by which the API server calls the app's Mutators, for creations and
// updates, and its Validators, also for deletions. An administrator creates them. A configuration is nil if the app
// has no such webhooks. to is the address of the app: the path of the service or URL is filled in.
//
// All versions of a kind share one webhook: the API server converts objects of versions without a handler to a version
// that has one. Requests are denied if the app does not answer. Adapt the result as necessary, for example add a
// namespace selector.
func (a *App) WebhookConfigurations(to admissionregistrationv1.WebhookClientConfig) (
	*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration,
) {
	var mutating *admissionregistrationv1.MutatingWebhookConfiguration
	var validating *admissionregistrationv1.ValidatingWebhookConfiguration
	for _, kinds := range a.kindsWith(hasMutator) {
		if mutating == nil {
			mutating = &admissionregistrationv1.MutatingWebhookConfiguration{}
			mutating.Name = a.config.Name
		}
		path := operator.AdmissionPath("mutate", kinds[0])
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name:                    webhookName(path),
			ClientConfig:            reachedAt(to, path),
			Rules:                   rules(kinds, admissionregistrationv1.Create, admissionregistrationv1.Update),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			MatchPolicy:             new(admissionregistrationv1.Equivalent),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	for _, kinds := range a.kindsWith(hasValidator) {
		if validating == nil {
			validating = &admissionregistrationv1.ValidatingWebhookConfiguration{}
			validating.Name = a.config.Name
		}
		path := operator.AdmissionPath("validate", kinds[0])
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name:         webhookName(path),
			ClientConfig: reachedAt(to, path),
			Rules: rules(
				kinds, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
			),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			MatchPolicy:             new(admissionregistrationv1.Equivalent),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return mutating, validating
}

// CustomResourceConversion returns the spec.conversion for the CustomResourceDefinitions of the app's Converters. to
// is the address of the app: the path of the service or URL is filled in.
func (a *App) CustomResourceConversion(
	to admissionregistrationv1.WebhookClientConfig,
) *apiextensionsv1.CustomResourceConversion {
	at := reachedAt(to, operator.ConversionPath)
	config := &apiextensionsv1.WebhookClientConfig{URL: at.URL, CABundle: at.CABundle}
	if at.Service != nil {
		config.Service = new(apiextensionsv1.ServiceReference(*at.Service))
	}
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: config, ConversionReviewVersions: []string{"v1"}},
	}
}

// webhookName returns a name for the webhook at a path. The API server requires at least three segments.
func webhookName(path string) string {
	return strings.ReplaceAll(path[1:], "/", ".")
}

func rules(
	versions []resource.Kind, operations ...admissionregistrationv1.OperationType,
) []admissionregistrationv1.RuleWithOperations {
	rule := admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{versions[0].Group()},
		Resources: []string{versions[0].Plural()},
	}}
	for _, kind := range versions {
		rule.APIVersions = append(rule.APIVersions, kind.Version())
	}
	return []admissionregistrationv1.RuleWithOperations{rule}
}

// reachedAt adds a path to the address of the app.
func reachedAt(
	to admissionregistrationv1.WebhookClientConfig, path string,
) admissionregistrationv1.WebhookClientConfig {
	to = *to.DeepCopy()
	if to.URL != nil {
		to.URL = new(strings.TrimSuffix(*to.URL, "/") + path)
	}
	if to.Service != nil {
		base := ""
		if to.Service.Path != nil {
			base = strings.TrimSuffix(*to.Service.Path, "/")
		}
		to.Service.Path = new(base + path)
	}
	return to
}
