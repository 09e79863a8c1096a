// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"trueup.dev/controlplane/internal/datadir"
)

const leafValidity = 365 * 24 * time.Hour

// authority is a certificate authority of this control plane, stored in the data directory.
type authority struct {
	cert          *x509.Certificate
	key           crypto.Signer
	file, keyFile string
}

func (a *authority) pem() []byte { return encodeCertificate(a.cert) }

// credentials are a certificate and its key in PEM.
type credentials struct{ cert, key []byte }

// pki holds all certificates and keys. There are two authorities, because a client certificate must never be accepted
// as the certificate of the front proxy.
type pki struct {
	ca, frontProxyCA            *authority
	servingCert, servingKey     string // files
	proxyCert, proxyKey         string // files
	serviceAccountKey           string // file
	admin, controllers, podUser credentials
}

// newPKI loads the authorities and the service account key from the directory, creates missing ones, and issues new
// certificates for the components.
func newPKI(f *datadir.Folder, serviceIP net.IP) (*pki, error) {
	if err := os.MkdirAll(f.File("pki"), 0o700); err != nil {
		return nil, fmt.Errorf("dir %s: %w", f.Path(), datadir.Cause(err))
	}
	p := &pki{
		servingCert: f.File("pki", "apiserver.crt"), servingKey: f.File("pki", "apiserver.key"),
		proxyCert: f.File("pki", "front-proxy-client.crt"), proxyKey: f.File("pki", "front-proxy-client.key"),
		serviceAccountKey: f.File("pki", "sa.key"),
	}
	var err error
	if p.ca, err = loadAuthority(f, "ca", "trueup-controlplane"); err != nil {
		return nil, err
	}
	if p.frontProxyCA, err = loadAuthority(f, "front-proxy-ca", "trueup-controlplane-front-proxy"); err != nil {
		return nil, err
	}
	if _, err := loadKey(p.serviceAccountKey); err != nil {
		return nil, err
	}

	serving, err := p.ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, serviceIP},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
	})
	if err != nil {
		return nil, err
	}
	proxy, err := p.frontProxyCA.issueClient("front-proxy-client")
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		p.servingCert: serving.cert, p.servingKey: serving.key, p.proxyCert: proxy.cert, p.proxyKey: proxy.key,
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return nil, fmt.Errorf("file %s: %w", name, datadir.Cause(err))
		}
	}
	const masters = "system:masters"
	if p.admin, err = p.ca.issueClient("trueup-admin", masters); err != nil {
		return nil, err
	}
	if p.controllers, err = p.ca.issueClient("system:kube-controller-manager", masters); err != nil {
		return nil, err
	}
	p.podUser, err = p.ca.issueClient("trueup-pod-runner", masters)
	return p, err
}

func loadAuthority(f *datadir.Folder, name, commonName string) (*authority, error) {
	file, keyFile := f.File("pki", name+".crt"), f.File("pki", name+".key")
	key, err := loadKey(keyFile)
	if err != nil {
		return nil, err
	}
	certs, err := cert.CertsFromFile(file)
	switch {
	case err == nil:
		return &authority{cert: certs[0], key: key, file: file, keyFile: keyFile}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("certificate %s: %w", file, datadir.Cause(err))
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: commonName}, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", file, err)
	}
	if err := os.WriteFile(file, encodeCertificate(certificate), 0o600); err != nil {
		return nil, fmt.Errorf("certificate %s: %w", file, datadir.Cause(err))
	}
	return &authority{cert: certificate, key: key, file: file, keyFile: keyFile}, nil
}

// loadKey reads a private key, or creates it if it does not exist.
func loadKey(file string) (crypto.Signer, error) {
	loaded, err := keyutil.PrivateKeyFromFile(file)
	if err == nil {
		signer, ok := loaded.(crypto.Signer)
		if !ok {
			return nil, fmt.Errorf("key %s: %T cannot sign", file, loaded)
		}
		return signer, nil
	}
	if _, statErr := os.Stat(file); !errors.Is(statErr, fs.ErrNotExist) {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		return nil, fmt.Errorf("key %s: %w", file, datadir.Cause(err))
	}
	return key, nil
}

func (a *authority) issueClient(user string, groups ...string) (credentials, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// issueServing returns a certificate for a server with this name or address.
func (a *authority) issueServing(host string) (tls.Certificate, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubelet"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	issued, err := a.issue(template)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(issued.cert, issued.key)
}

func (a *authority) issue(template *x509.Certificate) (credentials, error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return credentials{}, fmt.Errorf("key for %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return credentials{}, fmt.Errorf("serial for %s: %w", name, err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour) // clocks of containers may differ slightly
	template.NotAfter = time.Now().Add(leafValidity)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return credentials{}, fmt.Errorf("certificate for %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return credentials{}, fmt.Errorf("certificate for %s: %w", name, err)
	}
	encodedKey, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return credentials{}, fmt.Errorf("key for %s: %w", name, err)
	}
	return credentials{cert: encodeCertificate(certificate), key: encodedKey}, nil
}

func encodeCertificate(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate.Raw})
}
