// SPDX-License-Identifier: Apache-2.0

package certmanager_test

import (
	"context"
	"errors"
	"testing"

	certv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
	"trueup.dev/lab/operators"
)

const module = "github.com/cert-manager/cert-manager"

func kinds() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(errors.Join(corev1.AddToScheme(s), admissionv1.AddToScheme(s), certv1.AddToScheme(s)))
	return s
}

// The CA of a Certificate is rotated while a webhook configuration wants it. As in cert-manager's manager, Secrets are
// not read from a cache.
func TestCAInjector(t *testing.T) {
	operators.Check(t, operators.Scenario{Module: module, Controller: "CA injector", Converge: converge.Scenario{
		Scheme: kinds(), For: webhooks(), CRDs: operators.CRDsOrDie(module, "deploy/crds"),
		Given: []client.Object{certificate(), secret("1")}, Uncached: []client.Object{&corev1.Secret{}},
		Setup: func(mgr manager.Manager) error {
			return cainjector.RegisterAllInjectors(context.Background(), mgr, cainjector.SetupOptions{
				EnableCertificatesDataSource: true,
				EnabledReconcilersFor:        map[string]bool{cainjector.ValidatingWebhookConfigurationName: true},
			})
		},
		Steps: converge.Steps(
			converge.Apply(webhooks()), converge.Settle(),
			converge.Change(secret(""), func(s *corev1.Secret) { s.Data = secret("2").Data }), converge.Settle(),
			converge.Delete(webhooks()), converge.Settle(),
		),
	}})
}

func certificate() *certv1.Certificate {
	c := &certv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	c.Spec.SecretName, c.Spec.IssuerRef.Name = "ca", "i"
	return c
}

func secret(ca string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "ca", Annotations: map[string]string{certv1.CertificateNameKey: "c"},
		},
		Data: map[string][]byte{"ca.crt": []byte(ca)},
	}
}

func webhooks() *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "w", Annotations: map[string]string{certv1.WantInjectAnnotation: "default/c"}},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "w.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionv1.SideEffectClassNone),
			ClientConfig: admissionv1.WebhookClientConfig{URL: new("https://w.example.com")},
		}},
	}
}
