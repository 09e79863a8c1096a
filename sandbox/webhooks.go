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
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	webhookHost    = "127.0.0.1"
	webhookTimeout = 30 * time.Second
	// conversionPath is the path at which controller-runtime serves conversions.
	conversionPath = "/convert"
)

// WebhookOptions configures the webhooks of a test. At least one of Configurations and Conversions is required.
type WebhookOptions struct {
	// Configurations are the MutatingWebhookConfigurations and ValidatingWebhookConfigurations to register: objects of
	// these types, slices of them, paths of YAML and JSON files and of directories, and file systems, as for
	// Sandbox.InstallCRDs. Other kinds in files are skipped, so the directory config/webhook of a kubebuilder project can
	// be used. Paths of URLs and services are kept. Host, port and certificate are replaced by those of the test. Default:
	// none.
	Configurations []any

	// Conversions are the names of installed CustomResourceDefinitions, such as "websites.example.com", whose versions a
	// webhook of the test converts. Its path is the one in the definition, or /convert. All tests share a definition, so
	// only one test at a time may convert its objects. At the end of the test its previous conversion is restored.
	// TestOptions.Private must be set. Default: none.
	Conversions []string

	// Host is the address of this machine at which the API server reaches the webhooks. Default: 127.0.0.1; a remote
	// cluster needs another address.
	Host string

	// AllNamespaces sends the requests for objects of all namespaces to the test. Default: false; each webhook gets an
	// additional namespace selector for the namespace of the test. Requests for cluster-scoped objects are not restricted
	// by it. For both, webhooks need an objectSelector, or TestOptions.Private must be set.
	AllNamespaces bool
}

// Webhooks is the address and certificate with which a test must serve its webhooks. With a manager of
// controller-runtime, use [Webhooks.Server].
type Webhooks struct {
	// Host and Port are the address to listen on.
	Host string
	Port int

	// CertDir is a directory with the certificate and the key to serve with: tls.crt and tls.key.
	CertDir string

	// CABundle is the certificate authority that clients must trust, in PEM.
	CABundle []byte
}

// Webhooks registers webhooks until the test t ends. t must be the test that ForTest was called with, or a subtest of
// it. Webhooks creates a certificate, chooses a free port, and returns both.
//
// When it returns, the API server uses the registrations: requests fail until the test serves its webhooks, see
// [Webhooks.WaitUntilServed]. Names of configurations get the namespace of the test as a suffix. At the end of t the
// configurations are deleted. Functions that are registered with t.Cleanup later, for example to stop the server, run
// before that. If Webhooks fails, it ends t with an error that lists every mistake in o.
func (e *Env) Webhooks(t testing.TB, o WebhookOptions) *Webhooks {
	t.Helper()
	configurations, err := o.prepare()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.checkShared(e, configurations); err != nil {
		t.Fatal(orDeath(e.Sandbox, err))
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
			return // the clean-up of ForTest reports the end of the control plane
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

// prepare sets defaults and returns the configurations in o, or an error that lists every mistake in o.
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
			errs = append(
				errs,
				fmt.Errorf(
					"field Conversions[%d]: %q is not the name of a CustomResourceDefinition: want <plural>.<group>", i, crd,
				),
			)
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("sandbox: invalid webhook options: %w", errors.Join(errs...))
	}
	return configurations, nil
}

// Server returns a server for the options of a manager: ctrl.Options{WebhookServer: w.Server()}. It serves nothing
// until the manager starts it. Each call returns another server, and only one of them can listen.
func (w *Webhooks) Server() webhook.Server {
	return webhook.NewServer(webhook.Options{Host: w.Host, Port: w.Port, CertDir: w.CertDir})
}

// URL returns the URL of a path on the test's server.
func (w *Webhooks) URL(path string) string { return "https://" + w.address() + path }

func (w *Webhooks) address() string { return net.JoinHostPort(w.Host, strconv.Itoa(w.Port)) }

// WaitUntilServed returns when a server with the test's certificate listens. It returns an error if ctx ends before, or
// if a server with another certificate listens.
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

// newWebhooks returns a free address and a certificate for it.
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
	// usedPorts holds the ports that tests of this process have reserved: a test that has not started its server yet must
	// not lose its port to another test.
	usedPorts = map[int]bool{}
	// certificates caches certificate and key by host. Creating them is slow, and tests need no secrets from each other.
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
