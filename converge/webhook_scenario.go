// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/sim"
)

// admission reads the configurations of webhooks of the program.
func (c *scenarioCheck) admission(prefix string, configurations []client.Object) {
	for i, obj := range configurations {
		field := fmt.Sprintf("%sWebhooks[%d]", prefix, i)
		switch obj := obj.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for n, w := range obj.Webhooks {
				c.webhook(fmt.Sprintf("%s.Webhooks[%d]", field, n), true, admissionregistrationv1.ValidatingWebhook{
					Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
					NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions,
					MatchPolicy: w.MatchPolicy,
				})
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for n, w := range obj.Webhooks {
				c.webhook(fmt.Sprintf("%s.Webhooks[%d]", field, n), false, w)
			}
		default:
			c.problem("%s: %T is neither a MutatingWebhookConfiguration nor a ValidatingWebhookConfiguration", field, obj)
		}
	}
}

// webhook reads the configuration of a webhook. Both types of configurations have the fields that are read.
func (c *scenarioCheck) webhook(field string, mutating bool, w admissionregistrationv1.ValidatingWebhook) {
	hook := sim.Webhook{
		Name: w.Name, Mutating: mutating, Rules: w.Rules,
		IgnoresFailures: w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Ignore,
		Exact:           w.MatchPolicy != nil && *w.MatchPolicy == admissionregistrationv1.Exact,
	}
	if w.ClientConfig.Service == nil || w.ClientConfig.Service.Path == nil {
		c.problem("%s: ClientConfig.Service.Path is required", field)
		return
	}
	hook.Path = *w.ClientConfig.Service.Path
	if len(w.MatchConditions) > 0 {
		c.problem("%s: MatchConditions are not supported", field)
	}
	var err error
	if hook.Objects, err = selectorOf(w.ObjectSelector); err != nil {
		c.problem("%s.ObjectSelector: %w", field, err)
	}
	if hook.Namespaces, err = selectorOf(w.NamespaceSelector); err != nil {
		c.problem("%s.NamespaceSelector: %w", field, err)
	}
	c.program.Webhooks = append(c.program.Webhooks, hook)
}

// selectorOf returns a selector. One that is absent selects everything.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}
