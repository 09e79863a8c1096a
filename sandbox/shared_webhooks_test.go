// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"io"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// newValidation returns a configuration with a webhook for creations of a resource.
func newValidation(name, group, version, resource string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    name + ".example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/validate")},
			FailurePolicy:           new(admissionregistrationv1.Ignore),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
				},
			}},
		}},
	}
}

func TestWebhooks_ThatAffectOtherTestBinaries(t *testing.T) {
	selective := newValidation("selective", "", "v1", "nodes")
	selective.Webhooks[0].ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	scoped := newValidation("scoped", "*", "*", "*")
	scoped.Webhooks[0].Rules[0].Scope = new(admissionregistrationv1.NamespacedScope)
	configMaps := newValidation("maps", "", "v1", "configmaps")
	of := func(configuration any) WebhookOptions { return WebhookOptions{Configurations: []any{configuration}} }
	cases := map[string]struct {
		o    WebhookOptions
		want string // "" if the webhooks affect no other binary
	}{
		"namespaced":               {of(configMaps), ""},
		"namespaces":               {of(newValidation("ns", "", "v1", "namespaces")), ""},
		"unknown resources":        {of(newValidation("x", "x.example.com", "v1", "xs")), ""},
		"a scope":                  {of(scoped), ""},
		"an object selector":       {WebhookOptions{Configurations: []any{selective}, AllNamespaces: true}, ""},
		"cluster-scoped":           {of(newValidation("n", "", "v1", "nodes")), "nodes of"},
		"all resources of a group": {of(newValidation("n", "", "v1", "*")), "cluster-scoped"},
		"all groups":               {of(newValidation("n", "*", "v1", "pods")), "cluster-scoped"},
		"all namespaces": {
			WebhookOptions{Configurations: []any{configMaps}, AllNamespaces: true},
			"webhook maps.example.com has no objectSelector",
		},
		"conversion": {WebhookOptions{Conversions: []string{"as.example.com"}}, "field Conversions"},
	}
	env := ForTest(t, TestOptions{})
	private := &Env{Sandbox: &Sandbox{config: env.config, server: &process{}}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			configurations, err := c.o.prepare()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.o.checkShared(private, configurations); err != nil {
				t.Errorf("on a control plane of its own: %v", err)
			}
			err = c.o.checkShared(env, configurations)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), "set TestOptions.Private") ||
				!strings.Contains(err.Error(), c.want)):
				t.Errorf("got error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestUnselectiveConfiguration(t *testing.T) {
	env := ForTest(t, TestOptions{
		Private: true, Options: Options{Controllers: []string{"none"}, DisablePods: true, Progress: io.Discard},
	})
	client, err := kubernetes.NewForConfig(env.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	registrations := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	namespaced := newValidation("of-one-namespace", "", "v1", "configmaps")
	namespaced.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for want, configuration := range map[string]*admissionregistrationv1.ValidatingWebhookConfiguration{
		"": namespaced, "of-all": newValidation("of-all", "", "v1", "configmaps"),
	} {
		_, err := registrations.Create(t.Context(), configuration, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := unselectiveConfiguration(t.Context(), env.RESTConfig()); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if err := registrations.Delete(t.Context(), configuration.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
