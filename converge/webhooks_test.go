// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// secretHooks sets a default in secrets, and refuses secrets that users change in a forbidden way.
type secretHooks struct{ client.Reader }

func (h *secretHooks) Default(_ context.Context, s *corev1.Secret) error {
	if s.Data["value"] == nil {
		s.Data = map[string][]byte{"value": []byte("default")}
	}
	return nil
}

// ValidateCreate refuses secrets if there is already a config map of the same name. It reads from the cache.
func (h *secretHooks) ValidateCreate(ctx context.Context, s *corev1.Secret) (admission.Warnings, error) {
	err := h.Get(ctx, client.ObjectKeyFromObject(s), &corev1.ConfigMap{})
	if err == nil {
		err = errors.New("the config map exists")
	}
	return nil, client.IgnoreNotFound(err)
}

func (h *secretHooks) ValidateUpdate(_ context.Context, before, after *corev1.Secret) (admission.Warnings, error) {
	if string(after.Data["value"]) < string(before.Data["value"]) {
		return nil, errors.New("the value must not become smaller")
	}
	return nil, nil
}

func (h *secretHooks) ValidateDelete(context.Context, *corev1.Secret) (admission.Warnings, error) {
	return nil, errors.New("must not be deleted")
}

// withHooks registers the hooks beside the controller of a scenario.
func withHooks(s Scenario) Scenario {
	setup := s.Setup
	s.Setup = func(mgr ctrl.Manager) error {
		hooks := &secretHooks{mgr.GetClient()}
		if err := ctrl.NewWebhookManagedBy(mgr, &corev1.Secret{}).WithDefaulter(hooks).WithValidator(hooks).
			Complete(); err != nil {
			return err
		}
		return setup(mgr)
	}
	return s
}

// TestWebhooks calls the webhooks of the manager for writes of users: defaults, and refusals with the error that an API
// server returns.
func TestWebhooks(t *testing.T) {
	s := withHooks(controllerScenario(false))
	secret := newSecret("a")
	secret.Data = nil
	var refused error
	s.Steps = Steps(
		Apply(secret),
		Settle(),
		Do("make the value smaller", func(ctx context.Context, c client.Client) error {
			refused = c.Patch(ctx, newSecret("a"), client.RawPatch("application/merge-patch+json", []byte(`{"data":null}`)))
			if refused == nil {
				refused = c.Patch(
					ctx, newSecret("a"), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"YQ=="}}`)),
				)
			}
			return nil
		}),
		Settle(),
	)
	s.Desired = func(state State) error {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		if !state.Get(configMap) || configMap.Data["value"] != "default" {
			return errors.New("the default is missing")
		}
		return nil
	}
	Run(t, s)
	want := `admission webhook "vsecret-v1.kb.io" denied the request: the value must not become smaller`
	if refused == nil || refused.Error() != want || apierrors.ReasonForError(refused) != metav1.StatusReasonForbidden {
		t.Errorf("got %v, want %s", refused, want)
	}
}

// TestWebhookConfigurations calls webhooks according to their rules and selectors.
func TestWebhookConfigurations(t *testing.T) {
	s := withHooks(controllerScenario(false))
	path, never := "/validate--v1-secret", "/other"
	s.Webhooks = []client.Object{&admissionregistrationv1.ValidatingWebhookConfiguration{
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "secrets.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Path: &path},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"secrets"},
				},
			}},
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"keep": "true"}},
		}},
	}}
	setup := s.Setup
	s.Setup = func(mgr ctrl.Manager) error {
		mgr.GetWebhookServer().Register(never, &admission.Webhook{Handler: admission.HandlerFunc(
			func(context.Context, admission.Request) admission.Response { return admission.Denied("always") },
		)})
		return setup(mgr)
	}
	kept := newSecret("kept")
	kept.Labels = map[string]string{"keep": "true"}
	var refused error
	s.Steps = Steps(Apply(kept), Apply(newSecret("a")), Settle(), Do("delete both", func(
		ctx context.Context, c client.Client,
	) error {
		refused = c.Delete(ctx, kept.DeepCopy())
		return c.Delete(ctx, newSecret("a"))
	}), Settle())
	report := converges(t, s, Options{Seed: 1})
	want := `admission webhook "secrets.example.com" denied the request: must not be deleted`
	if refused == nil || refused.Error() != want {
		t.Errorf("got %v, want %s", refused, want)
	}
	if !slices.ContainsFunc(report.Certificate.LeftOut, func(line string) bool { return strings.Contains(line, never) }) {
		t.Errorf("the certificate does not tell that %s is not called: %q", never, report.Certificate.LeftOut)
	}
}

// TestWebhooksAreChecked lists all mistakes in configurations.
func TestWebhooksAreChecked(t *testing.T) {
	s := controllerScenario(false)
	s.Webhooks = []client.Object{&corev1.ConfigMap{}, &admissionregistrationv1.MutatingWebhookConfiguration{
		Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "a"}},
	}}
	_, err := newPlan(s)
	for _, want := range []string{
		"Webhooks[0]: *v1.ConfigMap is neither", "Webhooks[1].Webhooks[0]: ClientConfig.Service.Path is required",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
