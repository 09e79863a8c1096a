// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// classifier sets a label of config maps.
type classifier struct{}

func (classifier) Default(_ context.Context, m *corev1.ConfigMap) error {
	metav1.SetMetaDataLabel(&m.ObjectMeta, "class", "default")
	return nil
}

// classifiedScenario has a program whose webhook labels the config maps of another one, which ignores some errors.
func classifiedScenario(policy admissionregistrationv1.FailurePolicyType, ignore func(error) bool) Scenario {
	path := "/classify"
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "classify.example.com", FailurePolicy: &policy,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Path: &path},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				},
			}},
		}},
	}
	return inDefaults(Scenario{
		Setup: setupOf("copy", &corev1.Secret{}, func(
			ctx context.Context, c client.Client, secret *corev1.Secret,
		) (reconcile.Result, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.ConfigMap{})
			if !apierrs.IsNotFound(err) || secret.DeletionTimestamp != nil {
				return done, client.IgnoreNotFound(err)
			}
			if err = c.Create(ctx, configMapOf(secret, true)); ignore(err) {
				return done, nil
			}
			return done, client.IgnoreAlreadyExists(err)
		}, &corev1.ConfigMap{}),
		Programs: []Program{{
			Name: "policy", Webhooks: []client.Object{configuration}, Setup: func(mgr manager.Manager) error {
				mgr.GetWebhookServer().Register(path, admission.WithDefaulter(mgr.GetScheme(), classifier{}))
				return nil
			},
		}},
		Steps:   Steps(Apply(newSecret("a")), Settle(), Delete(newSecret("a")), Settle()),
		Without: map[Fault]string{FaultServerError: "the test is about webhooks"},
	})
}

// TestWebhooksOfOtherPrograms restarts a program just before one of its webhooks is called.
func TestWebhooksOfOtherPrograms(t *testing.T) {
	never := func(error) bool { return false }
	converges(t, classifiedScenario(admissionregistrationv1.Fail, never), Options{Seed: 1})
	for name, s := range map[string]Scenario{
		"an error that is ignored":  classifiedScenario(admissionregistrationv1.Fail, apierrs.IsInternalError),
		"a failure that is ignored": classifiedScenario(admissionregistrationv1.Ignore, never),
	} {
		f := foundIn(t, s)
		if f == nil {
			t.Errorf("%s: nothing was found", name)
			continue
		}
		if f.Violation.Oracle != OracleEndState || !slices.Equal(
			f.Faults, []string{"restart at admit ConfigMap default/a by policy"},
		) {
			t.Errorf("%s: %s", name, f)
		}
	}
}
