// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// webhook is what webhooks of both kinds of configurations have in common.
type webhook struct {
	name        string
	sideEffects *admissionv1.SideEffectClass
	client      *admissionv1.WebhookClientConfig
	versions    []string
}

// Upstream: pkg/apis/admissionregistration/validation/validation.go: validateMutatingWebhookConfiguration
// Upstream: pkg/apis/admissionregistration/validation/validation.go: validateMutatingWebhook
func validateMutatingWebhooks(c *admissionv1.MutatingWebhookConfiguration) field.ErrorList {
	var hooks []webhook
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		hooks = append(hooks, webhook{w.Name, w.SideEffects, &w.ClientConfig, w.AdmissionReviewVersions})
	}
	return validateWebhooks(hooks)
}

// Upstream: pkg/apis/admissionregistration/validation/validation.go: validateValidatingWebhookConfiguration
// Upstream: pkg/apis/admissionregistration/validation/validation.go: validateValidatingWebhook
func validateValidatingWebhooks(c *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
	var hooks []webhook
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		hooks = append(hooks, webhook{w.Name, w.SideEffects, &w.ClientConfig, w.AdmissionReviewVersions})
	}
	return validateWebhooks(hooks)
}

// validateWebhooks requires what all webhooks have. Rules, selectors and match conditions are not validated.
// Upstream: pkg/apis/admissionregistration/validation/validation.go: validateMutatingWebhook, validateValidatingWebhook
// Upstream: pkg/apis/admissionregistration/validation/validation.go: validateAdmissionReviewVersions
func validateWebhooks(hooks []webhook) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, w := range hooks {
		at := field.NewPath("webhooks").Index(i)
		errs = append(errs, utilvalidation.IsFullyQualifiedName(at.Child("name"), w.name)...)
		effects := []string{string(admissionv1.SideEffectClassNone), string(admissionv1.SideEffectClassNoneOnDryRun)}
		if w.sideEffects == nil {
			errs = append(errs, field.Required(at.Child("sideEffects"), "must specify one of "+strings.Join(effects, ", ")))
		} else if !slices.Contains(effects, string(*w.sideEffects)) {
			errs = append(errs, field.NotSupported(at.Child("sideEffects"), *w.sideEffects, effects))
		}
		if (w.client.URL == nil) == (w.client.Service == nil) {
			errs = append(errs, field.Required(at.Child("clientConfig"), "exactly one of url or service is required"))
		}
		if len(w.versions) == 0 {
			errs = append(errs, field.Required(at.Child("admissionReviewVersions"), "must specify one of v1, v1beta1"))
		}
		if names[w.name] {
			errs = append(errs, field.Duplicate(at.Child("name"), w.name))
		}
		names[w.name] = w.name != ""
	}
	return errs
}
