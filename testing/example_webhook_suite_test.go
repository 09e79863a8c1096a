// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// keyWebhook denies secrets without a key. Any admission.Handler can be tested: this one uses nothing but the config.
func keyWebhook(c reconcilers.Config) *admission.Webhook {
	decoder := admission.NewDecoder(c.Scheme())
	return &admission.Webhook{Handler: admission.HandlerFunc(func(
		ctx context.Context, req admission.Request,
	) admission.Response {
		secret := &corev1.Secret{}
		if err := decoder.Decode(req, secret); err != nil {
			return admission.Errored(400, err)
		}
		if len(secret.Data["key"]) > 0 {
			return admission.Allowed("")
		}
		audit := &corev1.ConfigMap{}
		audit.Namespace, audit.GenerateName = secret.Namespace, "denied-"
		audit.Data = map[string]string{"secret": secret.Name}
		if err := c.Create(ctx, audit); err != nil {
			return admission.Errored(500, err)
		}
		return admission.Denied("a secret must have a key")
	})}
}

// testKeys would be named TestKeys if it were not an example.
func testKeys(t *testing.T) {
	request := func(secret string) *admission.Request {
		return &admission.Request{
			AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(secret)}},
		}
	}
	audit := &corev1.ConfigMap{Data: map[string]string{"secret": "token"}}
	audit.Namespace, audit.GenerateName = "default", "denied-"

	rtesting.AdmissionWebhookTestSuite{
		{
			Name:             "with a key",
			Request:          request(`{"metadata":{"namespace":"default","name":"token"},"data":{"key":"MTIz"}}`),
			ExpectedResponse: admission.Allowed(""),
		},
		{
			Name:             "without a key",
			Request:          request(`{"metadata":{"namespace":"default","name":"token"}}`),
			ExpectCreates:    []client.Object{audit},
			ExpectedResponse: admission.Denied("a secret must have a key"),
		},
	}.RunWithContext(t, clientgoscheme.Scheme, func(
		_ *testing.T, _ context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
	) (*admission.Webhook, error) {
		return keyWebhook(c), nil
	})
}

func ExampleAdmissionWebhookTestSuite() {
	var t *testing.T // of your own test function
	testKeys(t)
}
