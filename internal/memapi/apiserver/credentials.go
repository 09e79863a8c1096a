// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"trueup.dev/internal/serving/abandoned"
)

// contextName is the name of the context, the cluster and the user in the kubeconfig.
const contextName = "trueup-memory"

// newCertificate returns a certificate for the loopback address that signs itself, and its PEM encoding for clients.
func newCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: contextName}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(1, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, encoded, nil
}

// newToken returns the credential of all clients.
func newToken() string { return rand.Text() }

// writeKubeconfig writes a kubeconfig that only the user can read, and returns the same configuration.
func writeKubeconfig(path, url, token string, authority []byte) (*rest.Config, error) {
	content := clientcmdapi.NewConfig()
	content.Clusters[contextName] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: authority}
	content.AuthInfos[contextName] = &clientcmdapi.AuthInfo{Token: token}
	content.Contexts[contextName] = &clientcmdapi.Context{
		Cluster: contextName, AuthInfo: contextName, Namespace: "default",
	}
	content.CurrentContext = contextName
	encoded, err := clientcmd.Write(*content)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: url, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: authority}, QPS: -1,
	}, os.WriteFile(path, encoded, 0o600)
}

// dirPrefix is the prefix of the private directories of servers.
const dirPrefix = "trueup-memory-"

// removeAbandoned removes the directories of killed servers of this user. A directory without a kubeconfig belongs to a
// server that is starting.
func removeAbandoned() {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range found {
		if abandoned.Kubeconfig(context.Background(), filepath.Join(dir, "kubeconfig")) {
			_ = os.RemoveAll(dir)
		}
	}
}
