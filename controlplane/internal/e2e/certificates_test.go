// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

// request creates a CertificateSigningRequest, approves it, and returns the certificate and its key.
func (p *process) request(
	t *testing.T, name, signer string, subject pkix.Name, usage certificatesv1.KeyUsage, addresses ...net.IP,
) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(
		rand.Reader, &x509.CertificateRequest{Subject: subject, IPAddresses: addresses}, private,
	)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		t.Fatal(err)
	}
	requests := p.client.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: signer,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	if _, err := requests.UpdateApproval(t.Context(), name, csr, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "certificate issued", func(ctx context.Context) error {
		csr, err := requests.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(csr.Status.Certificate) == 0 {
			return fmt.Errorf("status %+v", csr.Status)
		}
		certificate = csr.Status.Certificate
		return nil
	})
	return certificate, key
}

func TestApprovedRequestsAreIssued(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	certificate, key := p.request(t, "client", certificatesv1.KubeAPIServerClientSignerName,
		pkix.Name{CommonName: "alice", Organization: []string{"developers"}}, certificatesv1.UsageClientAuth)
	config := rest.AnonymousClientConfig(p.config)
	config.CertData, config.KeyData = certificate, key
	alice, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alice.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("alice may list namespaces, want her known and without rights")
	} else if want := `User "alice" cannot list`; !contains(err, want) {
		t.Errorf("error = %v, want %q in it", err, want)
	}

	kubelet := pkix.Name{CommonName: "system:node:test", Organization: []string{"system:nodes"}}
	serving, _ := p.request(t, "serving", certificatesv1.KubeletServingSignerName, kubelet,
		certificatesv1.UsageServerAuth, net.IPv4(127, 0, 0, 1))
	authority := x509.NewCertPool()
	authority.AppendCertsFromPEM(p.config.CAData)
	block, _ := pem.Decode(serving)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parsed.Verify(x509.VerifyOptions{Roots: authority}); err != nil {
		t.Errorf("serving certificate is not issued by the cluster's authority: %v", err)
	}
}

// A bootstrapping kubelet's request is approved without an administrator.
func TestRequestOfANodeIsApproved(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:new", Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	requests := p.client.CertificatesV1().CertificateSigningRequests()
	if _, err = requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "node"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "approved and issued", func(ctx context.Context) error {
		csr, err := requests.Get(ctx, "node", metav1.GetOptions{})
		if err == nil && len(csr.Status.Certificate) == 0 {
			err = errors.New("no certificate")
		}
		return err
	})
}
