// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/simple"
)

func TestWebhookConfigurations(t *testing.T) {
	e := newEnv(t, crd("Gauge", "gauges", "v1", "v2"))
	config := e.config("configured")
	mutator, validator := (&admissions{}).handlers()
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: gaugeV1, Validator: validator}, {Kind: widgetKind, Mutator: mutator}, {Kind: gaugeV2, Validator: validator},
	}
	made := e.make(config)
	at := admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{
			Namespace: "system", Name: "app", Path: new("/base/"),
		}, CABundle: []byte("ca"),
	}
	service := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{
				Namespace: "system", Name: "app", Path: &path,
			}, CABundle: []byte("ca"),
		}
	}
	rule := func(
		resource string, versions []string, operations ...admissionregistrationv1.OperationType,
	) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: versions, Resources: []string{resource},
		}}}
	}
	wantMutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "configured"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutate.widgets.simple.example.com", ClientConfig: service("/base/mutate/widgets.simple.example.com"),
			Rules: rule("widgets", []string{"v1"}, "CREATE", "UPDATE"),
		}},
	}
	wantValidating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "configured"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.gauges.simple.example.com", ClientConfig: service("/base/validate/gauges.simple.example.com"),
			Rules: rule("gauges", []string{"v1", "v2"}, "CREATE", "UPDATE", "DELETE"),
		}},
	}
	mutating, validating := made.WebhookConfigurations(at)
	policies := cmp.Options{
		cmpopts.IgnoreFields(
			admissionregistrationv1.MutatingWebhook{}, "FailurePolicy", "MatchPolicy", "SideEffects", "AdmissionReviewVersions",
		),
		cmpopts.IgnoreFields(
			admissionregistrationv1.ValidatingWebhook{}, "FailurePolicy", "MatchPolicy", "SideEffects",
			"AdmissionReviewVersions",
		),
	}
	if diff := cmp.Diff(wantMutating, mutating, policies); diff != "" {
		t.Errorf("mutating (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantValidating, validating, policies); diff != "" {
		t.Errorf("validating (-want +got):\n%s", diff)
	}
	// The API server accepts them unchanged.
	e.Must(e.Create(e.Context(), mutating, client.DryRunAll))
	e.Must(e.Create(e.Context(), validating, client.DryRunAll))
	if *at.Service.Path != "/base/" {
		t.Errorf("the argument was changed to %s", *at.Service.Path)
	}

	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Watcher: &simple.Watcher{}}}
	if mutating, validating := e.make(config).WebhookConfigurations(at); mutating != nil || validating != nil {
		t.Errorf("an app without admission has %v and %v", mutating, validating)
	}
}

func TestCustomResourceConversion(t *testing.T) {
	e := newEnv(t)
	config := e.config("converting")
	config.Converters = gadgetConverters
	got := e.make(config).CustomResourceConversion(admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{
			Namespace: "system", Name: "app", Port: new(int32(444)),
		}, CABundle: []byte("ca"),
	})
	want := &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{
					Namespace: "system", Name: "app", Path: new("/convert"), Port: new(int32(444)),
				}, CABundle: []byte("ca"),
			},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conversion (-want +got):\n%s", diff)
	}
}
