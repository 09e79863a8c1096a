// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CertificateKind is the kind of cert-manager's certificates.
var CertificateKind = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}

// ActOnCertificate issues a Certificate of cert-manager at once: its Secret gets a key and a certificate that is signed
// by itself, which only depend on its names.
func ActOnCertificate(ctx context.Context, c client.Client, obj client.Object) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	certificate := &unstructured.Unstructured{Object: content}
	certificate.SetGroupVersionKind(CertificateKind)
	if err := issue(ctx, c, certificate); err != nil {
		return err
	}
	return certificateIsReady(ctx, c, certificate)
}

// issue creates or replaces the Secret of a Certificate.
func issue(ctx context.Context, c client.Client, certificate *unstructured.Unstructured) error {
	name, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")
	common, _, _ := unstructured.NestedString(certificate.Object, "spec", "commonName")
	names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	data, err := KeyPair(common, names)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: certificate.GetNamespace(), Name: name,
		Annotations: map[string]string{"cert-manager.io/certificate-name": certificate.GetName()},
	}, Type: corev1.SecretTypeTLS, Data: data}
	found := &corev1.Secret{}
	switch err := c.Get(ctx, client.ObjectKeyFromObject(secret), found); {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil:
		return c.Create(ctx, secret)
	case equality.Semantic.DeepEqual(found.Data, secret.Data):
		return nil
	}
	found.Data = secret.Data
	return c.Update(ctx, found)
}

// KeyPair returns a key and a certificate, which only depend on the names.
func KeyPair(common string, names []string) (map[string][]byte, error) {
	hash := sha256.New()
	for _, name := range append([]string{common}, names...) {
		hash.Write([]byte(name + "\n"))
	}
	key := ed25519.NewKeyFromSeed(hash.Sum(nil))
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // as time in a bubble of testing/synctest does
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: common}, DNSNames: names, IsCA: true,
		NotBefore: begin, NotAfter: begin.Add(90 * 24 * time.Hour), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth,
		},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return map[string][]byte{
		corev1.TLSCertKey: public, "ca.crt": public,
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// certificateIsReady sets the condition of a Certificate.
func certificateIsReady(ctx context.Context, c client.Client, certificate *unstructured.Unstructured) error {
	conditions, _, _ := unstructured.NestedSlice(certificate.Object, "status", "conditions")
	if len(conditions) == 1 {
		condition, _ := conditions[0].(map[string]any)
		if condition["observedGeneration"] == certificate.GetGeneration() {
			return nil
		}
	}
	if err := unstructured.SetNestedSlice(certificate.Object, []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Ready", "message": "Certificate is up to date and has not expired",
		"observedGeneration": certificate.GetGeneration(), "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339),
	}}, "status", "conditions"); err != nil {
		return err
	}
	return c.Status().Update(ctx, certificate)
}
