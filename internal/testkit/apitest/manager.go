// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Manager starts a manager that is limited to the namespace of the test, unless the options set other namespaces. The
// context of setups is the context that the manager runs with. It stops with the test, or earlier when the returned
// function is called.
func (e *Env) Manager(
	cfg *rest.Config, options ctrl.Options, setups ...func(context.Context, ctrl.Manager) error,
) (stop func()) {
	e.Helper()
	options.Scheme = e.Scheme()
	options.Metrics.BindAddress = cmp.Or(options.Metrics.BindAddress, "0")
	options.Controller.SkipNameValidation = new(true) // several tests use the same controller name
	if options.Cache.DefaultNamespaces == nil {
		options.Cache.DefaultNamespaces = map[string]cache.Config{e.Namespace: {}}
	}
	mgr, err := ctrl.NewManager(cfg, options)
	e.Must(err)
	ctx, cancel := context.WithCancel(context.Background())
	e.Cleanup(cancel)
	for _, setup := range setups {
		e.Must(setup(ctx, mgr))
	}
	return e.Go("the manager", func(running context.Context) error {
		context.AfterFunc(running, cancel)
		return mgr.Start(ctx)
	})
}

// WebhookOptions returns the options of a webhook server on a free port of this machine, and its self-signed
// certificate.
func (e *Env) WebhookOptions() (options webhook.Options, authority []byte) {
	e.Helper()
	options = webhook.Options{Host: "127.0.0.1", Port: e.FreePort(), CertDir: e.TempDir()}
	certificate, key, err := certutil.GenerateSelfSignedCertKey(options.Host, []net.IP{net.ParseIP(options.Host)}, nil)
	e.Must(err)
	e.Must(os.WriteFile(filepath.Join(options.CertDir, "tls.crt"), certificate, 0o600))
	e.Must(os.WriteFile(filepath.Join(options.CertDir, "tls.key"), key, 0o600))
	return options, certificate
}

// FreePort returns a free port of this machine.
func (e *Env) FreePort() int {
	e.Helper()
	listener, err := new(net.ListenConfig).Listen(e.Context(), "tcp", "127.0.0.1:0")
	e.Must(err)
	defer func() { e.Must(listener.Close()) }()
	return listener.Addr().(*net.TCPAddr).Port
}
