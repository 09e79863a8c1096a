// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/memapi/workloads"
)

func newCertificate(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(workloads.CertificateKind)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

func certificateDefinition() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "certificates.cert-manager.io"}}
	crd.Spec.Group, crd.Spec.Scope = workloads.CertificateKind.Group, apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Kind: workloads.CertificateKind.Kind, ListKind: "CertificateList", Plural: "certificates", Singular: "certificate",
	}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: workloads.CertificateKind.Version, Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: new(true),
		}},
		Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
	}}
	return crd
}

// certificateScenario has a reconciler that creates a Certificate for a Secret, and labels the Secret when it is ready.
func certificateScenario() Scenario {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		found := newCertificate(secret.Name)
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(found), found)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if err != nil {
			certificate := newCertificate(secret.Name)
			certificate.Object["spec"] = map[string]any{
				"secretName": "tls", "commonName": "a.example.com", "dnsNames": []any{"a.example.com"},
			}
			if err := controllerutil.SetControllerReference(secret, certificate, scheme.Scheme); err != nil {
				return reconcile.Result{}, err
			}
			return reconcile.Result{}, e.Client.Create(ctx, certificate)
		}
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
		if len(conditions) == 0 || secret.Labels["ready"] == "yes" {
			return reconcile.Result{}, nil
		}
		secret.Labels = map[string]string{"ready": "yes"}
		return reconcile.Result{}, e.Client.Update(ctx, secret)
	})
	s.CRDs = []client.Object{certificateDefinition()}
	s.Owns = []client.Object{newCertificate("")}
	s.World = []Actor{Certificates()}
	s.Steps = Lifecycle(newSecret("a"))
	return s
}

func TestCertificates(t *testing.T) {
	p := mustPlan(t, certificateScenario())
	o := p.execute(t, nil, p.usual(), nil)
	if len(o.Violations) > 0 {
		t.Fatal(o.Violations)
	}
	secret := &corev1.Secret{}
	for _, objects := range o.Settled[0].Objects {
		for _, obj := range objects {
			if found, ok := obj.(*corev1.Secret); ok && found.Name == "tls" {
				secret = found
			}
		}
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := leaf.VerifyHostname("a.example.com"); err != nil {
		t.Error(err)
	}
	again, err := workloads.KeyPair("a.example.com", []string{"a.example.com"})
	if err != nil || string(again[corev1.TLSCertKey]) != string(secret.Data[corev1.TLSCertKey]) {
		t.Error("the certificate differs each time", err)
	}
	if secret.Annotations["cert-manager.io/certificate-name"] != "a" || metav1.GetControllerOf(secret) != nil {
		t.Errorf("metadata %v", secret.ObjectMeta)
	}
	converges(t, certificateScenario(), Options{Seed: 1})
}
