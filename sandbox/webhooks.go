// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

const (
	webhookHost    = "127.0.0.1"
	webhookTimeout = 30 * time.Second
	// conversionPath is where controller-runtime serves conversions.
	conversionPath = "/convert"
)

// WebhookOptions says which webhooks a test has. At least one of Configurations and Conversions is required.
type WebhookOptions struct {
	// Configurations are the MutatingWebhookConfigurations and ValidatingWebhookConfigurations to register: objects of these types, slices of them, paths of
	// YAML and JSON files and of folders, and file systems, as for Sandbox.InstallCRDs. Other kinds in files are skipped, so the folder config/webhook of a
	// kubebuilder project will do. Paths of URLs and services are kept; host, port and certificate become those of the test. Default: none.
	Configurations []any

	// Conversions are the names of installed CustomResourceDefinitions, such as "websites.example.com", whose versions are converted by a webhook of the test,
	// at the path in the definition, or at /convert without one. A definition belongs to all tests: only one test at a time may convert its objects. At the
	// end of the test it gets the conversion back that it had. Default: none.
	Conversions []string

	// Host is the address of this machine to listen on, at which the API server reaches it. Default: 127.0.0.1; a remote cluster needs another one.
	Host string

	// AllNamespaces sends the requests for objects of all namespaces to the test. Default: false, each webhook gets a namespace selector, in addition to its
	// own, for the namespace of the test. Requests for objects that have no namespace are never restricted by it.
	AllNamespaces bool
}

// Webhooks is where the API server sends the requests for the webhooks of a test. With controller-runtime:
//
//	ctrl.Options{WebhookServer: webhook.NewServer(webhook.Options{Host: w.Host, Port: w.Port, CertDir: w.CertDir})}
type Webhooks struct {
	// Host and Port are the address to listen on.
	Host string
	Port int

	// CertDir is a folder with the certificate and the key to serve with: tls.crt and tls.key.
	CertDir string

	// CABundle is what clients trust, in PEM.
	CABundle []byte
}

// Webhooks registers webhooks for the time of the test t, which is the one that ForTest was called with, or a part of it. It makes a certificate and chooses a
// free port; what it returns says where to serve them.
//
// When it returns, the API server uses the registrations: requests fail until the test serves its webhooks, see [Webhooks.WaitUntilServed]. Names of
// configurations get the namespace of the test as a suffix. At the end of t the configurations are deleted; what t.Cleanup registers later, such as the end of
// the server, runs before that. Webhooks fails t if that is not possible, with every mistake in o.
func (e *Env) Webhooks(t testing.TB, o WebhookOptions) *Webhooks {
	t.Helper()
	configurations, err := o.prepare()
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWebhooks(o.Host, t.TempDir())
	if err != nil {
		t.Fatalf("sandbox: preparing to serve webhooks: %v", err)
	}
	r, err := newWebhookRegistrar(e, w, t.Name())
	if err != nil {
		t.Fatalf("sandbox: registering webhooks: %v", err)
	}
	t.Cleanup(func() {
		if e.Err() != nil {
			return // The end of the control plane is reported by the clean-up of ForTest.
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), webhookTimeout)
		defer cancel()
		if err := r.undo(ctx); err != nil {
			t.Error(orDeath(e.Sandbox, fmt.Errorf("sandbox: removing the test's webhooks: %w", err)))
		}
	})
	ctx, cancel := context.WithTimeoutCause(t.Context(), webhookTimeout, fmt.Errorf("not in use after %s", webhookTimeout))
	defer cancel()
	for _, c := range configurations {
		if err := r.register(ctx, c, o.AllNamespaces); err != nil {
			t.Fatal(orDeath(e.Sandbox, fmt.Errorf("sandbox: registering webhooks from %s: %w", c.origin, err)))
		}
	}
	for _, crd := range o.Conversions {
		if err := r.convert(ctx, crd); err != nil {
			t.Fatal(orDeath(e.Sandbox, fmt.Errorf("sandbox: registering the conversion webhook of %s: %w", crd, err)))
		}
	}
	return w
}

// prepare sets defaults and returns the configurations that o names, or every mistake in o.
func (o *WebhookOptions) prepare() ([]webhookConfiguration, error) {
	if o.Host == "" {
		o.Host = webhookHost
	}
	var errs []error
	if len(o.Configurations) == 0 && len(o.Conversions) == 0 {
		errs = append(errs, errors.New("at least one of Configurations and Conversions is required"))
	}
	configurations, err := readWebhookConfigurations(o.Configurations)
	if err != nil {
		errs = append(errs, fmt.Errorf("field Configurations: %w", err))
	}
	for i, crd := range o.Conversions {
		if plural, group, ok := strings.Cut(crd, "."); !ok || plural == "" || group == "" {
			errs = append(errs, fmt.Errorf("field Conversions[%d]: %q is not the name of a CustomResourceDefinition: want <plural>.<group>", i, crd))
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("sandbox: invalid webhook options: %w", errors.Join(errs...))
	}
	return configurations, nil
}

// URL returns the URL of a path on the test's server.
func (w *Webhooks) URL(path string) string { return "https://" + w.address() + path }

func (w *Webhooks) address() string { return net.JoinHostPort(w.Host, strconv.Itoa(w.Port)) }

// WaitUntilServed returns when a server with the test's certificate listens, or an error when ctx ends before, or when a server with another one does.
func (w *Webhooks) WaitUntilServed(ctx context.Context) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.CABundle)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	err := poll(ctx, func() (bool, error) {
		connection, err := dialer.DialContext(ctx, "tcp", w.address())
		var untrusted *tls.CertificateVerificationError
		switch {
		case errors.As(err, &untrusted):
			return true, fmt.Errorf("another server listens, or it does not use the certificate in CertDir: %w", err)
		case err != nil:
			return false, err
		}
		return true, connection.Close()
	})
	if err != nil {
		return fmt.Errorf("sandbox: waiting for a webhook server at %s: %w", w.address(), err)
	}
	return nil
}

// newWebhooks returns an address that nobody listens on, and a certificate for it.
func newWebhooks(host, dir string) (*Webhooks, error) {
	port, err := freePort(host)
	if err != nil {
		return nil, err
	}
	certificate, key, err := certificateFor(host)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return &Webhooks{Host: host, Port: port, CertDir: dir, CABundle: certificate}, nil
}

var (
	webhookMu sync.Mutex
	// usedPorts are the ports that tests of this process have got: one that has not started its server yet must not lose its port to another.
	usedPorts = map[int]bool{}
	// certificates are the pairs of certificate and key by host. Making one takes a while, and tests need no secrets from each other.
	certificates = map[string][2][]byte{}
)

func freePort(host string) (int, error) {
	webhookMu.Lock()
	defer webhookMu.Unlock()
	for {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, "0")) //nolint:noctx // ends at once
		if err != nil {
			return 0, err
		}
		port := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			return 0, err
		}
		if !usedPorts[port] {
			usedPorts[port] = true
			return port, nil
		}
	}
}

func certificateFor(host string) (certificate, key []byte, err error) {
	webhookMu.Lock()
	defer webhookMu.Unlock()
	if pair, ok := certificates[host]; ok {
		return pair[0], pair[1], nil
	}
	certificate, key, err = certutil.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	certificates[host] = [2][]byte{certificate, key}
	return certificate, key, nil
}
